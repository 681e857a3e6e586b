"""The bills of materials are those of the images that there are."""

from tests.images.containerfile import IMAGES, TEXT, instructions
from tests.release.sbom import EXTRAS


def test_each_image_has_one_with_the_extras_that_it_installs() -> None:
    assert set(EXTRAS) == set(IMAGES)
    assert ("ARG", f"EXTRAS={EXTRAS['trainer']}") in instructions(TEXT)
