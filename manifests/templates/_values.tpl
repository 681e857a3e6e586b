{{/* Say what cannot be installed, before anything is. */}}
{{- define "hera-specon.refuse" -}}
{{- if and (eq .Values.scope "platform") (not .Values.namespaces) -}}
  {{- fail "scope: platform steers the sweeps of the namespaces that you name, and namespaces is empty. Set, for instance, --set 'namespaces={team-a,team-b}'." -}}
{{- end -}}
{{- if and (eq .Values.scope "namespaced") .Values.namespaces -}}
  {{- fail (printf "scope: namespaced steers the sweeps of the release's own namespace, %s, and namespaces names %s. Leave namespaces empty, or set scope to platform." .Release.Namespace (join ", " .Values.namespaces)) -}}
{{- end -}}
{{- if and .Values.image.tag .Values.image.digest -}}
  {{- fail (printf "image.tag is %s and image.digest is %s: which of them? Leave one empty, for instance --set image.digest=" .Values.image.tag .Values.image.digest) -}}
{{- end -}}
{{- if not (or .Values.mlflow.trackingUri .Values.mlflow.server.enabled) -}}
  {{- fail "mlflow.trackingUri is empty: where do your sweeps log? Set it to an address such as http://mlflow.team-a:5000, or add a server to try things with: --set mlflow.server.enabled=true" -}}
{{- end -}}
{{- end -}}

{{/*
What kustomize builds for the scope and for each namespace of sweeps, with the components that the values choose: a list
of objects, as JSON. Those for namespaces of sweeps have theirs; others have none yet.
*/}}
{{- define "hera-specon.chosen" -}}
{{- $objects := include "hera-specon.build" (dict "files" .Files "folder" (printf "overlays/%s" .Values.scope)) | fromJsonArray -}}
{{- $folder := eq .Values.scope "platform" | ternary "steered-namespace" "sweep-namespace" -}}
{{- range $namespace := .Values.namespaces -}}
  {{- range include "hera-specon.build" (dict "files" $.Files "folder" $folder) | fromJsonArray -}}
    {{- $_ := set .metadata "namespace" $namespace -}}
    {{- $objects = append $objects . -}}
  {{- end -}}
{{- end -}}
{{- $components := dict "mlflow" .Values.mlflow.server.enabled "recommend" .Values.recommend "service-monitor" .Values.serviceMonitor.enabled "without-exec" (not (or .Values.recommend .Values.exec)) "without-eviction" (not (or .Values.recommend .Values.eviction)) -}}
{{- range $name, $chosen := $components -}}
  {{- if $chosen -}}
    {{- $component := dict "files" $.Files "folder" (printf "components/%s" $name) "objects" $objects -}}
    {{- $objects = include "hera-specon.build" $component | fromJsonArray -}}
  {{- end -}}
{{- end -}}
{{- toJson $objects -}}
{{- end -}}

{{/* Whether the values leave an object out; empty: no. */}}
{{- define "hera-specon.left-out" -}}
{{- $values := .root.Values -}}
{{- if eq .object.kind "Namespace" -}}yes, it is made by --create-namespace
{{- else if and (eq .object.kind "NetworkPolicy") (not $values.networkPolicy.enabled) -}}yes
{{- else if and (eq .object.kind "PodDisruptionBudget") (eq (toString $values.replicas) "1") -}}yes, a single replica would keep its node from being drained
{{- else if and (eq .object.metadata.name "specon-sweep-executor") (not $values.executorRole) -}}yes
{{- end -}}
{{- end -}}

{{/* Put the settings that the values give the controller into its ConfigMap among `objects`, in place; all, as JSON. */}}
{{- define "hera-specon.set" -}}
{{- $values := .root.Values -}}
{{- range .objects -}}
  {{- if eq .kind "ConfigMap" -}}
    {{- $data := .data -}}
    {{- with $values.mlflow.trackingUri -}}
      {{- $_ := set $data "SPECON_CONTROLLER_MLFLOW_TRACKING_URI" . -}}
    {{- end -}}
    {{- if eq $values.scope "platform" -}}
      {{- $_ := set $data "SPECON_CONTROLLER_NAMESPACE" (join "," $values.namespaces) -}}
    {{- end -}}
    {{- range $name, $value := $values.settings -}}
      {{- $_ := set $data $name (toString $value) -}}
    {{- end -}}
    {{- $files := include "hera-specon.files" $values | fromJson -}}
    {{- $variables := dict "node-kinds.yaml" "SPECON_CONTROLLER_NODE_KINDS" "shares.yaml" "SPECON_CONTROLLER_SHARES" -}}
    {{- range $name, $_content := $files -}}
      {{- $_ := set $data (get $variables $name) (printf "/etc/hera-specon/%s" $name) -}}
    {{- end -}}
    {{- toJson $data -}}
    {{- toJson $files -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The files that the values give the controller: a map of their names to what is in them, as JSON. */}}
{{- define "hera-specon.files" -}}
{{- $files := dict -}}
{{- with .nodeKinds -}}
  {{- $_ := set $files "node-kinds.yaml" (toYaml .) -}}
{{- end -}}
{{- with .shares -}}
  {{- $_ := set $files "shares.yaml" (toYaml .) -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}
