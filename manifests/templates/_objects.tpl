{{/* An object as this release installs it, as YAML: its place and names, Helm's labels, and what the values change. */}}
{{- define "hera-specon.finished" -}}
{{- include "hera-specon.place" . -}}
{{- $labels := dict
  "app.kubernetes.io/part-of" "hera-specon"
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (replace "+" "_" .root.Chart.Version)) -}}
{{- $_ := set .object.metadata "labels" (merge (.object.metadata.labels | default dict) $labels) -}}
{{- if eq .object.kind "Deployment" -}}
  {{- include "hera-specon.pods" . -}}
{{- else if eq .object.kind "PersistentVolumeClaim" -}}
  {{- include "hera-specon.volume" . -}}
{{- else if and (eq .object.kind "NetworkPolicy") (eq .object.metadata.name "specon-controller") -}}
  {{- include "hera-specon.ports" . -}}
{{- else if eq .object.kind "ServiceMonitor" -}}
  {{- $_ := mergeOverwrite .object.metadata.labels .root.Values.serviceMonitor.labels -}}
{{- end -}}
{{- toYaml .object -}}
{{- end -}}

{{/*
Put an object into its namespace, the release's where it has none yet. What has no namespace gets the release's as an
end of its name, so that releases in two namespaces have nothing in common.
*/}}
{{- define "hera-specon.place" -}}
{{- $own := .root.Release.Namespace -}}
{{- $metadata := .object.metadata -}}
{{- if hasPrefix "Cluster" .object.kind -}}
  {{- $_ := set $metadata "name" (printf "%s-%s" $metadata.name $own) -}}
{{- else -}}
  {{- $_ := set $metadata "namespace" ($metadata.namespace | default $own) -}}
{{- end -}}
{{- if eq (dig "roleRef" "kind" "" .object) "ClusterRole" -}}
  {{- $_ := set .object.roleRef "name" (printf "%s-%s" .object.roleRef.name $own) -}}
{{- end -}}
{{- range .object.subjects -}}
  {{- $_ := set . "namespace" (eq .name "default" | ternary $metadata.namespace $own) -}}
{{- end -}}
{{- end -}}

{{/* Change the pods of a Deployment by the values; more of those of the controller. */}}
{{- define "hera-specon.pods" -}}
{{- $values := .root.Values -}}
{{- $spec := .object.spec.template.spec -}}
{{- $container := first $spec.containers -}}
{{- $image := splitn ":" 2 $container.image -}}
{{- $tag := printf "%s:%s" $values.image.repository ($values.image.tag | default $image._1) -}}
{{- $_ := set $container "image" (empty $values.image.digest | ternary $tag (printf "%s@%s" $values.image.repository $values.image.digest)) -}}
{{- with $values.image.pullPolicy -}}
  {{- $_ := set $container "imagePullPolicy" . -}}
{{- end -}}
{{- $_ := mergeOverwrite $spec (deepCopy $values.podSpec) -}}
{{- if eq .object.metadata.name "specon-controller" -}}
  {{- with $values.replicas -}}
    {{- $_ := set $.object.spec "replicas" . -}}
  {{- end -}}
  {{- $_ := mergeOverwrite $container.resources (deepCopy $values.resources) -}}
  {{- /* The pods read their settings at their start, so a change has to restart them. */ -}}
  {{- $_ := set .object.spec.template.metadata "annotations" (dict "checksum/settings" (sha256sum .settings)) -}}
  {{- if include "hera-specon.files" $values | fromJson -}}
    {{- $_ := set $spec "volumes" (append $spec.volumes (dict "name" "files" "configMap" (dict "name" "specon-controller-files"))) -}}
    {{- $mount := dict "name" "files" "mountPath" "/etc/hera-specon" "readOnly" true -}}
    {{- $_ := set $container "volumeMounts" (append $container.volumeMounts $mount) -}}
  {{- end -}}
  {{- range $container.envFrom -}}
    {{- if and .secretRef $values.mlflow.secret -}}
      {{- $_ := set . "secretRef" (dict "name" $values.mlflow.secret) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Change the claim of the MLflow server by the values. It outlives the release: there is data in it. */}}
{{- define "hera-specon.volume" -}}
{{- $_ := set .object.metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}
{{- with .root.Values.mlflow.server.storage -}}
  {{- $_ := set $.object.spec.resources.requests "storage" . -}}
{{- end -}}
{{- with .root.Values.mlflow.server.storageClass -}}
  {{- $_ := set $.object.spec "storageClassName" . -}}
{{- end -}}
{{- end -}}

{{/* Open the ports that the values name to the controller, and that of the MLflow server's address. */}}
{{- define "hera-specon.ports" -}}
{{- $open := .root.Values.networkPolicy.extraPorts -}}
{{- $address := urlParse .root.Values.mlflow.trackingUri -}}
{{- $named := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $address.host) | default (eq $address.scheme "http" | ternary "80" "") -}}
{{- if $named -}}
  {{- $open = append $open (int $named) -}}
{{- end -}}
{{- $known := list -}}
{{- range .object.spec.egress -}}
  {{- range .ports -}}
    {{- $known = append $known (int .port) -}}
  {{- end -}}
{{- end -}}
{{- $added := list -}}
{{- range $open | uniq -}}
  {{- if not (has (int .) $known) -}}
    {{- $added = append $added (dict "port" (int .)) -}}
  {{- end -}}
{{- end -}}
{{- if $added -}}
  {{- $_ := set .object.spec "egress" (append .object.spec.egress (dict "ports" $added)) -}}
{{- end -}}
{{- end -}}
