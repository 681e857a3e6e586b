"""What a sweep's pods and Kueue have agreed on: names of Kueue's only.

Kueue deletes a pod that it has admitted once that is resized. It leaves a pod alone that is a group by itself: of a
group it counts the pods, and compares no requests.
"""

from typing import Final

DOMAIN: Final = "kueue.x-k8s.io/"
"""Begins all names that are Kueue's, such as those of the scheduling gates of a pod that it has not admitted yet."""

LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""On a pod: the queue of its namespace that it waits in."""
LABEL_MANAGED: Final = "kueue.x-k8s.io/managed"
"""On a pod: ``true`` where Kueue has taken it on, also where it names no queue and its namespace has one by default."""
LABEL_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""On a pod: the group that it belongs to."""
ANNOTATION_GROUP_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
"""On a pod: how many pods its group has."""
ANNOTATION_RETRIABLE: Final = "kueue.x-k8s.io/retriable-in-group"
"""On a pod: ``false`` where no other pod of its group will take its place. Without it, the group of a pod that has
failed keeps its quota."""
TERMINATION_TARGET: Final = "TerminationTarget"
"""Kueue's condition of a pod that it is about to delete: it was preempted, or its queue stopped."""

POD_NAME: Final = "{{pod.name}}"
"""What Argo replaces by the name of a pod, in its labels too: each pod is a group of its own then."""
ALONE: Final = "1"
