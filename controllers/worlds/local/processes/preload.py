"""What a fork server may import for a program before that runs, found by reading the program's own files.

A fork must not change what the program does. So the server takes the program's own first steps, in their order: its
imports, followed through its own modules, and the settings of the environment between them. It stops at the first
statement that might have a say in what a later import does. Beyond that point, it imports only what a calm program
comes to later: one that leaves the environment and the import system alone, with libraries that are known here.
"""

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from controllers.core.errors import SpeconError
from controllers.worlds.local.environment import common
from controllers.worlds.local.processes import own_files
from controllers.worlds.local.processes.interpreter import PythonProgram, program_of
from controllers.worlds.local.processes.own_files import OwnFile, OwnFiles, base_of

LATER: Final[Mapping[str, tuple[str, ...]]] = {
    "mlflow_hooks": ("mlflow_hooks",),
    "mlflow": ("mlflow.tracking",),
    "numpy": ("numpy",),
    "pandas": ("pandas",),
    "scipy": ("scipy",),
    "sklearn": ("sklearn", "sklearn.datasets"),
    "xgboost": ("xgboost",),
    "lightgbm": ("lightgbm",),
    # What the first optimiser of torch.optim imports: three CPU seconds.
    "torch": ("torch", "torch._dynamo"),
    # Safe to fork as long as no operation has run.
    "tensorflow": ("tensorflow", "keras"),
    "keras": ("keras",),
}
"""The packages that are worth an import before the first fork, with what a calm program comes to in any case.

PyTorch's compiler comes before TensorFlow: each brings an LLVM, and the other order aborts the process.
"""
_COMPILER: Final = "torch._dynamo"
_BRING_LLVM: Final = ("tensorflow", "keras", "mlflow_hooks.keras")
_BACKENDS_THAT_FORK: Final = frozenset({"", "tensorflow", "torch", "numpy"})

_INDIFFERENT: Final = {
    *("absl", "accelerate", "click", "einops", "fire", "fsspec", "hydra", "ignite", "jinja2", "joblib", "lightning"),
    *("loguru", "matplotlib", "omegaconf", "optuna", "packaging", "PIL", "psutil", "pydantic", "pytorch_lightning"),
    *("requests", "rich", "seaborn", "tensorboard", "timm", "torchaudio", "torchmetrics", "torchtext", "torchvision"),
    *("tqdm", "transformers", "typer", "typing_extensions", "tyro", "yaml"),
}
"""Libraries that do not mind what was imported before them, and change nothing for what comes after them."""

_QUIET_CALL: Final = re.compile(
    r"(Path|pathlib\.\w+|os\.path\.\w+|os\.environ\.get|os\.getenv|logging\.\w+|warnings\.\w+|TypeVar|typing\.\w+"
    r"|frozenset|set|dict|list|tuple|range|len|int|float|str)\("
)
_UNQUIET: Final = re.compile(
    r"environ\s*\[[^\]]*\]\s*\|?=(?!=)|environ\s*\.\s*(setdefault|update|pop|clear|__setitem__)|environ\s*\|?=(?!=)"
    r"|=\s*os\.environ\s*$|del\s+os\.environ|putenv|unsetenv|dotenv|sys\s*\.\s*(path|modules|meta_path|path_hooks)"
    r"|from\s+sys\s+import",
    re.MULTILINE,
)
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_MAIN: Final = "__name__ == '__main__'"


class Plans:
    """Remembers what programs begin with, for as long as their files do not change."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[OwnFiles, tuple[str, ...]]] = {}

    def of(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], source: str | None = None
    ) -> tuple[str, ...]:
        """Return the same as ``plan``."""
        program = program_of(command)
        begun = program and (program.target, program.is_module)
        key = (begun, cwd, source, frozenset(common(env).items()), env.get("PYTHONPATH", ""))
        if key in self._known and self._known[key][0].unchanged:
            return self._known[key][1]
        files, entry = _begun(program, cwd, env, source)
        self._known[key] = files, _steps(files, entry, env)
        return self._known[key][1]


def plan(command: Sequence[str], cwd: Path, env: Mapping[str, str], source: str | None = None) -> tuple[str, ...]:
    """Return the steps to take before the first fork: modules to import, and settings such as ``NAME=value`` between.

    What it misses costs an attempt a slower start, nothing else.

    Args:
        command: of a trial, such as ``python -m jobs.vae --lr=0.1``.
        cwd: the trial's folder.
        env: the trial's environment.
        source: the program's text where that is in no file yet.
    """
    return Plans().of(command, cwd, env, source)


def _begun(
    program: PythonProgram | None, cwd: Path, env: Mapping[str, str], source: str | None
) -> tuple[OwnFiles, list[OwnFile]]:
    """Return where a program's own modules are, and the files that it begins with, its main one last."""
    elsewhere = [cwd / entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if source is not None:
        return OwnFiles(elsewhere), [own_files.parse_own_file(source)]
    if program is None:
        return OwnFiles(()), []
    if program.is_module:
        files = OwnFiles((cwd, *elsewhere))
        return files, [*files.of(program.target), *files.of(f"{program.target}.__main__")[-1:]]
    file = Path(os.path.realpath(cwd / program.target))
    files = OwnFiles((file.parent, *elsewhere))
    return files, [files.read(file)]


def _steps(files: OwnFiles, entry: Sequence[OwnFile], env: Mapping[str, str]) -> tuple[str, ...]:
    if not entry:
        return ()
    first = _FirstSteps(files, env)
    first.follow_program(entry)
    return tuple(dict.fromkeys([*first.steps, *_later(files, entry, first)]))


class _UnknownStepError(SpeconError):
    """A statement that may change what imports after it do."""


class _FirstSteps:
    """The steps that a program begins with, up to the first statement that is not understood."""

    def __init__(self, files: OwnFiles, env: Mapping[str, str]) -> None:
        self._files = files
        self._env = dict(env)
        self._seen: set[OwnFile] = set()
        self.steps: list[str] = []
        self.settings: list[str] = []
        """The text of each statement that only sets a variable, which has become a step."""

    @property
    def keras_forks(self) -> bool:
        """Whether Keras may be imported before a fork: what other backends than these start does not outlive one."""
        return self._env.get("KERAS_BACKEND", "") in _BACKENDS_THAT_FORK

    def follow_program(self, entry: Sequence[OwnFile]) -> None:
        try:
            for file in entry:
                self._follow(file, is_main=file is entry[-1])
        except _UnknownStepError:
            return

    def _follow(self, file: OwnFile, *, is_main: bool = False) -> None:
        if file in self._seen:
            return
        self._seen.add(file)
        if file.tree is None:
            raise _UnknownStepError
        for statement in file.tree.body:
            self._take(statement, file, is_main=is_main)

    def _take(self, statement: ast.stmt, file: OwnFile, *, is_main: bool) -> None:
        match statement:
            case ast.Import(names=names):
                for alias in names:
                    self._import(alias.name)
            case ast.ImportFrom(names=names):
                self._import_from(statement, [alias.name for alias in names], file.package)
            case ast.If(test=test, body=body, orelse=other):
                self._take_branch(ast.unparse(test), body, other, file, is_main=is_main)
            case ast.Try(body=body, orelse=other, finalbody=last) if all(map(_is_import, body)):
                for inner in (*body, *other, *last):
                    self._take(inner, file, is_main=is_main)
            case _ if setting := _setting(statement, self._env):
                self.settings.append(ast.unparse(statement))
                name, _, value = setting.partition("=")
                self._env[name] = value
                self.steps.append(setting)
            case _ if not _is_quiet(statement):
                raise _UnknownStepError

    def _take_branch(
        self, test: str, body: Sequence[ast.stmt], other: Sequence[ast.stmt], file: OwnFile, *, is_main: bool
    ) -> None:
        if test in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            taken = other
        elif test == _MAIN:
            taken = body if is_main else other
        else:
            raise _UnknownStepError
        for inner in taken:
            self._take(inner, file, is_main=is_main)

    def _import_from(self, statement: ast.ImportFrom, names: Sequence[str], package: str) -> None:
        base = base_of(statement, package)
        if not base:
            raise _UnknownStepError
        self._import(base)
        if self._files.has(base):
            for name in names:
                for file in self._files.of(f"{base}.{name}"):
                    self._follow(file)

    def _import(self, module: str) -> None:
        top = module.partition(".")[0]
        if self._files.has(module):
            for file in self._files.of(module):
                self._follow(file)
        elif top in LATER and _installed(top):
            if "keras" in module and not self.keras_forks:
                raise _UnknownStepError
            self.steps.append(module)
        elif top not in sys.stdlib_module_names and top not in _INDIFFERENT:
            raise _UnknownStepError


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _setting(statement: ast.stmt, env: Mapping[str, str]) -> str:
    """Return ``NAME=value`` where a statement does nothing but set a variable to a text, else an empty text."""
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=target, slice=name)], value=value):
            is_default = False
        case ast.Expr(ast.Call(ast.Attribute(target, "setdefault"), [name, value])):
            is_default = True
        case _:
            return ""
    match name, value:
        case ast.Constant(str(key)), ast.Constant(str(text)) if ast.unparse(target) in {"os.environ", "environ"}:
            return f"{key}={env.get(key, text) if is_default else text}"
    return ""


def _is_quiet(statement: ast.stmt) -> bool:
    """Return whether a statement has no say in what imports after it do."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Pass():
            return True
        case ast.Expr(value):
            return isinstance(value, ast.Constant) or _calls_nothing_unknown(value)
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name | ast.Tuple) for target in targets) and _calls_nothing_unknown(value)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or _calls_nothing_unknown(value)
    return False


def _calls_nothing_unknown(value: ast.expr) -> bool:
    calls = (ast.unparse(node) for node in ast.walk(value) if isinstance(node, ast.Call))
    return ast.unparse(value) not in {"os.environ", "environ"} and all(_QUIET_CALL.match(call) for call in calls)


def _later(files: OwnFiles, entry: Sequence[OwnFile], first: _FirstSteps) -> Iterator[str]:
    """Yield what a calm program imports somewhere, beyond its first steps; nothing for any other program."""
    packages: set[str] = set()
    for file in _reachable(files, entry):
        text = ast.unparse(file.tree) if file.tree else ""
        for setting in first.settings:
            text = text.replace(setting, "")
        if file.tree is None or _UNQUIET.search(text):
            return
        packages |= {name.partition(".")[0] for name in _imported(file) if not files.has(name)}
    known = {*LATER, *_INDIFFERENT, *sys.stdlib_module_names}
    if not packages <= known or ("keras" in packages and not first.keras_forks):
        return
    for package in LATER:
        if package in packages and _installed(package):
            for module in LATER[package]:
                if module != _COMPILER or not any(step.startswith(_BRING_LLVM) for step in first.steps):
                    yield module


def _reachable(files: OwnFiles, entry: Sequence[OwnFile]) -> Iterator[OwnFile]:
    """Yield the program's own files that it may come to, in functions too and by strings that name modules."""
    queue, seen = list(entry), set[OwnFile]()
    while queue:
        file = queue.pop()
        if file in seen:
            continue
        seen.add(file)
        yield file
        names = {*_imported(file), *_named(file)}
        queue += [other for name in sorted(names) if files.has(name) for other in files.of(name)]


def _imported(file: OwnFile) -> Iterator[str]:
    for node in ast.walk(file.tree) if file.tree else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__" and (base := base_of(node, file.package)):
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _named(file: OwnFile) -> Iterator[str]:
    for node in ast.walk(file.tree) if file.tree else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            yield node.value


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
