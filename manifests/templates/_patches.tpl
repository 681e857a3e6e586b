{{/* The `objects` after a `patch` of a kustomization `file`: a list, as JSON. */}}
{{- define "hera-specon.patch" -}}
{{- if not (and .patch.target.name .patch.target.group) -}}
  {{- fail (printf "%s: a patch selects by group and name, for the chart to apply it" .file) -}}
{{- end -}}
{{- $steps := hasPrefix "-" (trim .patch.patch) | ternary (fromYamlArray .patch.patch) list -}}
{{- if not (or $steps (eq (get (fromYaml .patch.patch) "$patch" | toString) "delete")) -}}
  {{- fail (printf "%s: the chart can apply patches that delete, and lists of steps, not: %s" .file .patch.patch) -}}
{{- end -}}
{{- $left := list -}}
{{- range $object := .objects -}}
  {{- if not (include "hera-specon.selected" (dict "object" $object "target" $.patch.target)) -}}
    {{- $left = append $left $object -}}
  {{- else if $steps -}}
    {{- range $steps -}}
      {{- include "hera-specon.step" (dict "object" $object "step" . "file" $.file) -}}
    {{- end -}}
    {{- $left = append $left $object -}}
  {{- end -}}
{{- end -}}
{{- toJson $left -}}
{{- end -}}

{{/* Whether the `target` of a patch selects an `object`; empty: no. Its kind and name are regular expressions. */}}
{{- define "hera-specon.selected" -}}
{{- $kind := regexMatch (printf "^(%s)$" (.target.kind | default ".*")) .object.kind -}}
{{- $name := regexMatch (printf "^(%s)$" .target.name) .object.metadata.name -}}
{{- if and $kind $name (hasPrefix (printf "%s/" .target.group) .object.apiVersion) -}}yes{{- end -}}
{{- end -}}

{{/*
Take a `step` of a JSON patch on an `object`, in place: `replace` an entry of one of its lists (/LIST/NUMBER), or `test`
what stands somewhere.
*/}}
{{- define "hera-specon.step" -}}
{{- $path := splitList "/" (trimPrefix "/" .step.path) -}}
{{- if and (eq .step.op "replace") (eq (len $path) 2) (kindIs "slice" (get .object (first $path))) -}}
  {{- $entries := list -}}
  {{- range $number, $entry := get .object (first $path) -}}
    {{- $entries = append $entries (eq $number (int (last $path)) | ternary $.step.value $entry) -}}
  {{- end -}}
  {{- $_ := set .object (first $path) $entries -}}
{{- else if eq .step.op "test" -}}
  {{- $found := .object -}}
  {{- range $path -}}
    {{- if kindIs "slice" $found -}}
      {{- $found = index $found (int .) -}}
    {{- else -}}
      {{- $found = get $found . -}}
    {{- end -}}
  {{- end -}}
  {{- if ne (toJson $found) (toJson .step.value) -}}
    {{- fail (printf "%s: %s of %s is %s, and not %s" .file .step.path .object.metadata.name (toJson $found) (toJson .step.value)) -}}
  {{- end -}}
{{- else -}}
  {{- fail (printf "%s: the chart can replace an entry of a list, and test, not: %s" .file (toJson .step)) -}}
{{- end -}}
{{- end -}}
