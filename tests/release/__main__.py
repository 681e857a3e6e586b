"""The command line: ``python -m tests.release --help``."""

from pathlib import Path

import click

from tests.release.checks import checks
from tests.release.repository import ROOT
from tests.release.versions import set_version

_FOLDER = ROOT / "build" / "release"


@click.group()
def main() -> None:
    """Prepare a release, and check that it may be made (docs/how-to/make-a-release.md)."""


@main.command()
@click.option("--tagged", is_flag=True, help="The tag is there, and has to lead to what is checked out.")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=_FOLDER, help="Takes the files.  [default: build/release]"
)
def check(*, tagged: bool, folder: Path) -> None:
    """Check everything that a release needs, and build its files; exit with 1 where something is missing."""
    wrong = 0
    for one in checks(ROOT, folder.absolute(), tagged=tagged):
        click.echo(f"{'!!' if one.problems else 'ok'}  {one.what}")
        for problem in one.problems:
            click.echo(f"      {problem}")
        wrong += bool(one.problems)
    if wrong:
        message = f"{wrong} of these keep the release from being made"
        raise click.ClickException(message)
    click.echo(f"The release's files are in {folder}")


@main.command("set-version")
@click.argument("version")
def set_version_everywhere(version: str) -> None:
    """Write VERSION wherever the version of the project stands."""
    try:
        changed = set_version(ROOT, version)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    for file in changed:
        click.echo(str(file))


if __name__ == "__main__":
    main()
