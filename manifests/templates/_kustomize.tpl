{{/*
The objects that kustomize builds of a folder: a list, as JSON.

Of kustomize it knows what the files here use: resources, components, literals of a configMapGenerator, labels, and the
patches of _patches.tpl. It refuses any other patch.

Takes the chart's `files`, and the `folder`; of a component also the `objects` that it changes.
*/}}
{{- define "hera-specon.build" -}}
{{- $file := printf "%s/kustomization.yaml" .folder -}}
{{- $given := .files.Get $file | required (printf "the chart lacks %s" $file) | fromYaml -}}
{{- with $given.Error -}}
  {{- fail (printf "%s: %s" $file .) -}}
{{- end -}}
{{- $objects := .objects | default list -}}
{{- range $given.resources -}}
  {{- $path := clean (printf "%s/%s" $.folder .) -}}
  {{- if hasSuffix ".yaml" . -}}
    {{- range splitList "\n---\n" ($.files.Get $path | required (printf "the chart lacks %s" $path)) -}}
      {{- $object := fromYaml . -}}
      {{- with $object.Error -}}
        {{- fail (printf "%s: %s" $path .) -}}
      {{- end -}}
      {{- $objects = append $objects $object -}}
    {{- end -}}
  {{- else -}}
    {{- $objects = concat $objects (include "hera-specon.build" (dict "files" $.files "folder" $path) | fromJsonArray) -}}
  {{- end -}}
{{- end -}}
{{- range $given.components -}}
  {{- $component := dict "files" $.files "folder" (clean (printf "%s/%s" $.folder .)) "objects" $objects -}}
  {{- $objects = include "hera-specon.build" $component | fromJsonArray -}}
{{- end -}}
{{- range $given.configMapGenerator -}}
  {{- $objects = include "hera-specon.generate" (dict "objects" $objects "generator" .) | fromJsonArray -}}
{{- end -}}
{{- range $given.labels -}}
  {{- include "hera-specon.label" (dict "objects" $objects "labels" .) -}}
{{- end -}}
{{- range $given.patches -}}
  {{- $objects = include "hera-specon.patch" (dict "objects" $objects "patch" . "file" $file) | fromJsonArray -}}
{{- end -}}
{{- toJson $objects -}}
{{- end -}}

{{/* The `objects` with the ConfigMap of a `generator`, or with that one changed: a list, as JSON. */}}
{{- define "hera-specon.generate" -}}
{{- $objects := .objects -}}
{{- $data := dict -}}
{{- range .generator.literals -}}
  {{- $pair := splitn "=" 2 . -}}
  {{- $_ := set $data $pair._0 $pair._1 -}}
{{- end -}}
{{- if eq (.generator.behavior | default "create") "merge" -}}
  {{- range $objects -}}
    {{- if and (eq .kind "ConfigMap") (eq .metadata.name $.generator.name) -}}
      {{- $_ := mergeOverwrite .data $data -}}
    {{- end -}}
  {{- end -}}
{{- else -}}
  {{- $map := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" (dict "name" .generator.name) "data" $data -}}
  {{- $objects = append $objects $map -}}
{{- end -}}
{{- toJson $objects -}}
{{- end -}}

{{/* Add one entry of a kustomization's `labels` to `objects`, in place. */}}
{{- define "hera-specon.label" -}}
{{- $pairs := .labels.pairs -}}
{{- $selects := .labels.includeSelectors -}}
{{- range .objects -}}
  {{- $_ := set .metadata "labels" (merge (.metadata.labels | default dict) $pairs) -}}
  {{- if and $selects (eq .kind "Deployment") -}}
    {{- $selected := dict "selector" (dict "matchLabels" $pairs) "template" (dict "metadata" (dict "labels" $pairs)) -}}
    {{- $_ := mergeOverwrite .spec (deepCopy $selected) -}}
  {{- else if and $selects (eq .kind "Service") -}}
    {{- $_ := set .spec "selector" $pairs -}}
  {{- end -}}
{{- end -}}
{{- end -}}
