# SPDX-License-Identifier: Apache-2.0
"""The small changes that can be made to a C file: one token, condition or statement each.

The file is read as tokens; comments, strings, preprocessor lines, log messages and assertions are
left alone. Functions are found by the kernel's style: `{` and `}` are in column 0.
"""
import bisect
import collections
import hashlib
import re

# kind: one of KINDS. start, end: the part of the file's text that is replaced by `text`.
Mutant = collections.namedtuple("Mutant", "path line function kind start end old text key")

KINDS = ("condition", "comparison", "logic", "arithmetic", "constant", "call", "assignment",
         "error return", "truth value")

TOKEN_RE = re.compile(r"""
      (?P<skip>\s+ | /\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])*)
    | (?P<string>(?:u8|[LuU])?"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
    | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.\d+|\d+)[uUlLfF]*)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<op>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)
    """, re.X | re.M | re.S)
Token = collections.namedtuple("Token", "kind text start end")

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
               "==": ("!=",), "!=": ("==",)}
LOGIC = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
KEYWORDS = ("if", "else", "for", "while", "do", "switch", "case", "default", "return", "break", "continue",
            "goto", "sizeof", "struct", "union", "enum", "const", "static", "unsigned", "signed", "extern")
NOT_TESTED_CALL_RE = re.compile(r"log_\w+|assert|static_assert|_Static_assert")
NUMERIC_RESULT_RE = re.compile(r"\b(?:int|int32_t|int64_t|ssize_t|long)\s+\w+\s*\(")
DOUBLED_FROM = 16  # a smaller constant becomes the next one


def tokens_of(text):
    found = []
    for match in TOKEN_RE.finditer(text):
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
    return found


class Source:
    """One C file and its mutants."""

    def __init__(self, path, text, seed):
        self.path, self.text, self.seed = path, text, seed
        self.tokens = tokens_of(text)
        self.line_starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.mutants = []
        self.seen = collections.Counter()
        self.closing = self.match_brackets()
        self.function, self.signature = "", ""

    def match_brackets(self):
        """Index of each opening bracket's closing one."""
        closing, open_ones = {}, []
        for i, token in enumerate(self.tokens):
            if token.text in "([{" and token.kind == "op":
                open_ones.append(i)
            elif token.text in ")]}" and token.kind == "op" and open_ones:
                closing[open_ones.pop()] = i
        return closing

    def line_of(self, offset):
        return bisect.bisect_right(self.line_starts, offset)

    def column_0(self, token):
        return token.start in (0, self.line_starts[self.line_of(token.start) - 1])

    def add(self, kind, start, end, text):
        """The key depends on the changed line and not on the lines around it, so that most of a
        selection stays the same while the file changes."""
        line = self.line_of(start)
        begin = self.line_starts[line - 1]
        words = " ".join(self.text[begin:self.text.find("\n", begin)].split())
        name = "\0".join((str(self.seed), self.path, self.function, words, kind, text))
        self.seen[name] += 1
        key = hashlib.sha256(("%s\0%d" % (name, self.seen[name])).encode()).hexdigest()
        self.mutants.append(Mutant(self.path, line, self.function, kind, start, end,
                                   self.text[start:end], text, key))

    def find(self):
        i, statement_start = 0, 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.text == "{" and token.kind == "op" and self.column_0(token) and i in self.closing:
                self.begin_function(statement_start, i)
                self.find_in_function(i + 1, self.closing[i])
                i = self.closing[i]
                self.function = ""
                statement_start = i + 1
            elif token.text == ";":
                statement_start = i + 1
            elif token.kind == "number":
                self.change_constant(i)
            i += 1
        return self.mutants

    def begin_function(self, start, end):
        self.signature = self.text[self.tokens[start].start:self.tokens[end].start]
        names = re.findall(r"(\w+)\s*\(", self.signature)
        self.function = names[0] if names else ""

    def find_in_function(self, begin, end):
        i, is_start, head_end = begin, True, begin
        while i < end:
            token = self.tokens[i]
            if token.text == "for" and i + 1 in self.closing:
                head_end = self.closing[i + 1]
            if is_start and i >= head_end:
                self.change_statement(i, end)
            if token.kind == "name" and NOT_TESTED_CALL_RE.fullmatch(token.text) and i + 1 in self.closing:
                i = self.closing[i + 1]
            else:
                self.change_token(i)
            is_start = self.begins_statement(i)
            i += 1

    def begins_statement(self, i):
        """Whether a statement may begin after token I."""
        text = self.tokens[i].text
        if text in (";", "{", "}", "else", "do"):
            return True
        if text == ")":
            opening = next((o for o, c in self.closing.items() if c == i), 0)
            return self.tokens[opening - 1].text in ("if", "for", "while", "switch")
        return False

    def change_token(self, i):
        token = self.tokens[i]
        if token.kind == "number":
            self.change_constant(i)
        elif token.text in ("true", "false"):
            self.add("truth value", token.start, token.end, "false" if token.text == "true" else "true")
        elif token.kind == "op" and token.text in COMPARISONS:
            for text in COMPARISONS[token.text]:
                self.add("comparison", token.start, token.end, text)
        elif token.kind == "op" and token.text in LOGIC:
            self.add("logic", token.start, token.end, LOGIC[token.text])
        elif token.kind == "op" and token.text in ARITHMETIC and self.is_binary(i):
            self.add("arithmetic", token.start, token.end, ARITHMETIC[token.text])
        elif token.text in ("if", "while") and i + 1 in self.closing:
            start, end = self.tokens[i + 1].end, self.tokens[self.closing[i + 1]].start
            self.add("condition", start, end, "!(%s)" % self.text[start:end])

    def is_binary(self, i):
        before = self.tokens[i - 1]
        return (before.kind in ("number", "string") or before.text in (")", "]") or
                (before.kind == "name" and before.text not in KEYWORDS))

    def change_constant(self, i):
        token = self.tokens[i]
        match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", token.text)
        if not match or self.is_array_size(i):
            return
        base = 16 if match.group(1)[:2] in ("0x", "0X") else 8 if re.match("0[0-7]", token.text) else 10
        value = int(match.group(1), base)
        changed = value * 2 if value >= DOUBLED_FROM else value - 1 if value == 1 else value + 1
        self.add("constant", token.start, token.end, str(changed) + match.group(2))

    def is_array_size(self, i):
        """`char text[64];`: a larger size is the same program. `return a[0];` is no declaration."""
        if i < 3 or self.tokens[i - 1].text != "[":
            return False
        before = self.tokens[i - 3]
        return before.text == "*" or before.kind == "name" and before.text not in ("return", "else")

    def change_statement(self, i, end):
        first = self.tokens[i]
        last = self.end_of_statement(i, end)
        if last is None:
            return
        if first.text == "return":
            self.change_return(i, last)
        elif first.kind == "name" and first.text not in KEYWORDS and self.tokens[i + 1].text == "(":
            if self.closing.get(i + 1) == last - 1 and not NOT_TESTED_CALL_RE.fullmatch(first.text):
                self.delete("call", i, last)
        if (first.text == "*" or first.kind == "name" and first.text not in KEYWORDS) and \
                self.is_assignment(i, last):
            self.delete("assignment", i, last)

    def end_of_statement(self, i, end):
        while i < end:
            text = self.tokens[i].text
            if text == ";":
                return i
            if text in ("{", "}") and self.tokens[i].kind == "op":
                return None
            i = self.closing.get(i, i) + 1
        return None

    def is_assignment(self, i, last):
        """A declaration has two names, or a type and `*`, one after the other."""
        second = self.tokens[i + 1]
        if second.kind == "name" and self.tokens[i].text != "*":
            return False
        if second.text == "*" and self.tokens[i].kind == "name":
            return False
        while i < last:
            if self.tokens[i].text in ASSIGNMENTS or self.tokens[i].text in ("++", "--"):
                return True
            i = self.closing.get(i, i) + 1
        return False

    def delete(self, kind, i, last):
        self.add(kind, self.tokens[i].start, self.tokens[last].end, ";")

    def change_return(self, i, last):
        value = "".join(t.text for t in self.tokens[i + 1:last])
        if re.fullmatch(r"-E[A-Z0-9]+|-errno|r|err|error|ret|status", value) and \
                NUMERIC_RESULT_RE.search(self.signature):
            self.add("error return", self.tokens[i + 1].start, self.tokens[last - 1].end, "0")


def mutants_of(path, text, seed):
    return Source(path, text, seed).find()


def apply(text, mutant):
    return text[:mutant.start] + mutant.text + text[mutant.end:]


def describe(mutant):
    def short(text):
        text = " ".join(text.split())
        return text if len(text) <= 60 else text[:57] + "..."
    if mutant.kind in ("call", "assignment"):
        return "`%s` deleted" % short(mutant.old)
    if mutant.kind == "condition":
        return "`%s` negated" % short(mutant.old)
    return "`%s` -> `%s`" % (short(mutant.old), short(mutant.text))


def choose(mutants, count):
    """Selects COUNT: one of each kind in turn, at most one per line while other lines are left."""
    by_kind = {kind: sorted((m for m in mutants if m.kind == kind), key=lambda m: m.key) for kind in KINDS}
    chosen, lines, later = [], set(), []
    while len(chosen) < count and any(by_kind.values()):
        for kind in KINDS:
            while by_kind[kind]:
                mutant = by_kind[kind].pop(0)
                if (mutant.path, mutant.line) in lines:
                    later.append(mutant)
                    continue
                lines.add((mutant.path, mutant.line))
                chosen.append(mutant)
                break
    return (chosen + later)[:count]
