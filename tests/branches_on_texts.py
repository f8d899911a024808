"""Find the branches of a module that look at a text, whatever the variable is called.

A branch looks at a text if it looks into one (``"word" in text``, ``text.startswith("word")``,
``re.search(...)``), or compares one with a sentence or with anything that explains (``==``, ``!=``,
``match``, a tuple of sentences). Words of a vocabulary that the product declares are no sentences:
they are what fields hold.

Sources are parsed, so the type of an expression is a guess: from annotations of fields, arguments
and functions by their names. What is not known to be anything else counts as a text.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

#: Two words or more.
_SENTENCE = re.compile(r"[^\W\d_]{2,}.* .*[^\W\d_]", re.DOTALL)
_LOOKS = ("startswith", "endswith")
_FINDS = ("find", "rfind", "index", "rindex", "count")
_REGULAR = ("match", "search", "fullmatch", "findall", "finditer")
_COLLECTIONS = (
    ast.Dict, ast.Set, ast.List, ast.Tuple, ast.DictComp, ast.SetComp, ast.ListComp,
    ast.GeneratorExp,
)  # fmt: skip
_MAKES_COLLECTIONS = frozenset(
    {"set", "list", "dict", "tuple", "sorted", "frozenset", "split", "splitlines", "values"}
)
_TEXT = re.compile(r"['\"]?(str|object|Any|bytes)( \| None)?['\"]?")
_UNKNOWN, _IS_TEXT, _OTHER = "", "str", "other"

#: Fields that explain. No branch compares what they hold with anything.
EXPLAINING = frozenset(
    {"reason", "message", "hint", "advice", "note", "why", "detail", "doing", "witness"}
)

#: Tables whose keys are words of a field, some of two words.
VOCABULARIES = frozenset(
    {"VERDICTS", "METRIC_VERDICTS", "SIZE_ORIGINS", "ACCEPTED", "EXPIRED", "EXCEEDED", "OTHER_FILE",
     "GO_ON", "NOT_SLOWER", "NO_HYPERVISOR", "NO_QUOTA"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch on a text.

    Attributes:
        path: Of the module, from the package.
        function: Where it stands, with its class; empty at module level.
        line: The line.
        code: The expression.
    """

    path: str
    function: str
    line: int
    code: str


@dataclass(slots=True)
class Names:
    """What the names of a package stand for.

    Attributes:
        fields: Annotations of fields and properties by name, over all classes.
        returns: Annotations of functions and methods by name.
        constants: Values of names at module level.
        words: Words of the declared vocabularies.
    """

    fields: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    returns: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    constants: dict[str, ast.expr] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)

    def learn(self, statements: Iterable[ast.stmt], nodes: Iterable[ast.AST]) -> None:
        """Take the names of one module, from the statements of its body and from all its nodes."""
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    self._learn_field(part)
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                self.returns[node.name].add(ast.unparse(node.returns))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
                self.fields[node.target.attr].add(ast.unparse(node.annotation))
        for statement in statements:
            for name, value in _assigned(statement):
                self.constants.setdefault(name, value)
                if name in VOCABULARIES:
                    keys = value.keys if isinstance(value, ast.Dict) else [value]
                    self.words |= {self.text_of(key) or "" for key in keys if key is not None}

    def _learn_field(self, part: ast.stmt) -> None:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            self.fields[part.target.id].add(ast.unparse(part.annotation))
        elif (
            isinstance(part, ast.FunctionDef)
            and part.returns is not None
            and any("property" in ast.unparse(decorator) for decorator in part.decorator_list)
        ):
            self.fields[part.name].add(ast.unparse(part.returns))

    def text_of(self, node: ast.expr) -> str | None:
        """Return the text that an expression is for sure, ``None`` if it is none."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name) and node.id in self.constants:
            value = self.constants[node.id]
            return (
                value.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str)
                else None
            )
        return None

    def is_sentence(self, node: ast.expr) -> bool:
        """Whether an expression is a text of several words that no vocabulary declares."""
        text = self.text_of(node)
        return text is not None and text not in self.words and bool(_SENTENCE.search(text))


def branches_on_texts(path: str, tree: ast.Module, names: Names) -> list[Branch]:
    """Return the branches of a module that look at a text, in its order."""
    finder = _Finder(path, names)
    finder.visit(tree)
    return finder.branches


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                yield target.id, statement.value
            elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                for part, value in zip(target.elts, statement.value.elts, strict=False):
                    if isinstance(part, ast.Name):
                        yield part.id, value
    elif (
        isinstance(statement, ast.AnnAssign)
        and statement.value is not None
        and isinstance(statement.target, ast.Name)
    ):
        yield statement.target.id, statement.value


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, names: Names) -> None:
        self.branches: list[Branch] = []
        self._path, self._names = path, names
        self._stack: list[str] = []
        self._kinds: list[dict[str, str]] = [{}]
        self._explaining: list[set[str]] = [set()]
        self._looped: dict[str, str | None] = {}

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._stack.append(node.name)
        self.generic_visit(node)
        self._stack.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        kinds: dict[str, str] = {}
        explaining: set[str] = set()
        self._stack.append(node.name)
        self._kinds.append(kinds)
        self._explaining.append(explaining)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None:
                kinds[argument.arg] = _kind_of(ast.unparse(argument.annotation))
        for part in ast.walk(node):
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                kinds[part.target.id] = _kind_of(ast.unparse(part.annotation))
            for name, value in _assigned(part) if isinstance(part, ast.stmt) else ():
                kinds.setdefault(name, self._kind(value))
                if self._explains(value):
                    explaining.add(name)
        self.generic_visit(node)
        self._explaining.pop()
        self._kinds.pop()
        self._stack.pop()

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if any(map(self._is_branch, sides, node.ops, node.comparators)):
            self._note(node)
        self.generic_visit(node)

    def _is_branch(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
        if isinstance(operator, ast.Eq | ast.NotEq):
            if self._names.is_sentence(left) or self._names.is_sentence(right):
                return True
            fixed = self._is_fixed(left) or self._is_fixed(right)
            return fixed and (self._explains(left) or self._explains(right))
        if isinstance(operator, ast.In | ast.NotIn):
            text = self._names.text_of(left) or self._one_of_texts(left)
            if text is None:
                held = right.elts if isinstance(right, ast.Tuple | ast.Set | ast.List) else []
                return self._explains(left) or any(map(self._names.is_sentence, held))
            if not _has_letters(text):
                return False
            return self._kind(right) != _OTHER or self._names.is_sentence(left)
        return False

    def generic_visit(self, node: ast.AST) -> None:
        # What a comprehension gives stands in front of what it goes over.
        for part in getattr(node, "generators", ()):
            self._learn_loop(part.target, part.iter)
        super().generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._learn_loop(node.target, node.iter)
        self.generic_visit(node)

    def _learn_loop(self, target: ast.expr, over: ast.expr) -> None:
        """Note a name that stands for one sentence after the other."""
        if isinstance(over, ast.Name):
            over = self._names.constants.get(over.id, over)
        if isinstance(target, ast.Name) and isinstance(over, ast.Tuple | ast.List | ast.Set):
            sentences = filter(self._names.is_sentence, over.elts)
            self._looped[target.id] = next(map(self._names.text_of, sentences), None)

    def _one_of_texts(self, node: ast.expr) -> str | None:
        """Return one of the sentences that a name of a loop stands for, ``None`` for others."""
        return self._looped.get(node.id) if isinstance(node, ast.Name) else None

    def _is_fixed(self, node: ast.expr) -> bool:
        """Whether an expression is a constant, not empty."""
        if isinstance(node, ast.Name):
            return node.id.isupper()
        return bool(self._names.text_of(node))

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and node.args:
            looks = called.attr in _LOOKS and self._kind(called.value) != _OTHER
            finds = (
                called.attr in _FINDS
                and self._kind(called.value) != _OTHER
                and ast.unparse(called.value) != "self"
                and _has_letters(self._names.text_of(node.args[0]))
            )
            # The key of a table: what is told for a sentence.
            by_sentence = called.attr == "get" and self._explains(node.args[0])
            if looks or finds or called.attr in _REGULAR or by_sentence:
                self._note(node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self._explains(node.slice):
            self._note(node)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        values = [
            part.value
            for case in node.cases
            for part in ast.walk(case.pattern)
            if isinstance(part, ast.MatchValue)
        ]
        if any(map(self._names.is_sentence, values)) or self._explains(node.subject):
            self._note(node)
        self.generic_visit(node)

    def _note(self, node: ast.AST) -> None:
        code = ast.unparse(node).split("\n")[0]
        line = getattr(node, "lineno", 0)
        function = ".".join(self._stack)
        self.branches.append(Branch(path=self._path, function=function, line=line, code=code))

    def _explains(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr in EXPLAINING
        if isinstance(node, ast.Name):
            return any(node.id in names for names in self._explaining)
        return False

    def _kind(self, node: ast.expr) -> str:
        if isinstance(node, _COLLECTIONS):
            return _OTHER
        if isinstance(node, ast.JoinedStr):
            return _IS_TEXT
        if isinstance(node, ast.Constant):
            return _IS_TEXT if isinstance(node.value, str) else _OTHER
        if isinstance(node, ast.Name):
            for kinds in reversed(self._kinds):
                if node.id in kinds:
                    return kinds[node.id]
            value = self._names.constants.get(node.id)
            return _UNKNOWN if value is None else self._kind(value)
        if isinstance(node, ast.Attribute):
            if node.attr == "__dict__" or ast.unparse(node) in ("os.environ", "sys.modules"):
                return _OTHER
            return _joined(self._names.fields.get(node.attr, ()))
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in _MAKES_COLLECTIONS:
                return _OTHER
            # Texts and dictionaries have methods of that name too.
            shared = hasattr(str, name) or hasattr(dict, name)
            return _UNKNOWN if shared else _joined(self._names.returns.get(name, ()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub):
            return _OTHER
        return _UNKNOWN


def _has_letters(text: str | None) -> bool:
    return text is not None and re.search(r"[^\W\d_]", text) is not None


def _kind_of(annotation: str) -> str:
    return _IS_TEXT if _TEXT.fullmatch(annotation) else _OTHER


def _joined(annotations: Iterable[str]) -> str:
    kinds = set(map(_kind_of, annotations))
    return _UNKNOWN if not kinds else _IS_TEXT if _IS_TEXT in kinds else _OTHER
