"""Makes llms.txt, a list of a site's pages with their abstracts, and llms-full.txt, the text of
its guides, for programs that read documentation as text."""

import json
import os
import re

_CONTEXT = re.compile(r"^<!--.*?-->\n*", re.DOTALL | re.MULTILINE)
_NAMED_LINK = re.compile(r"\[([^\]]+)\]\(doc:[^)]*\)")
_PAGE_LINK = re.compile(r"<doc:([^>]+)>")
_SYMBOL_LINK = re.compile(r"``/?([^`]+)``")


def write(site, sources, modules, base):
    """Writes both files into the folder of a site.

    - Parameters: the site's folder, the folder of the modules' sources, the modules in their
      order, and the site's path at its server.
    """
    pages = {module: _Module(site, module, base) for module in modules}
    with open(os.path.join(site, "llms.txt"), "w", encoding="utf-8") as file:
        file.write(f"# Tidemark\n\n> {pages[modules[0]].abstract}\n\n")
        file.write(
            "The addresses lead to pages as Markdown, or to pages that need scripts where there is "
            f"no such file. [The text of all guides]({base}/llms-full.txt) is in one file.\n")
        for module in modules:
            pages[module].list(file)
    with open(os.path.join(site, "llms-full.txt"), "w", encoding="utf-8") as file:
        for module in modules:
            for path in _articles(sources, module):
                _write_article(file, path, pages[module])


class _Module:
    """The pages of a module: articles and types, not their members."""

    def __init__(self, site, name, base):
        self.name, self.base = name, base
        self.folder = os.path.join(site, "data", "documentation")
        top = self._page(os.path.join(self.folder, name.lower() + ".json"))
        self.abstract = _text(top.get("abstract", []))
        self.articles, self.symbols = [], []
        inside = os.path.join(self.folder, name.lower())
        for file in sorted(os.listdir(inside)) if os.path.isdir(inside) else []:
            if not file.endswith(".json"):
                continue
            page = self._page(os.path.join(inside, file))
            name = file[: -len(".json")]
            row = (page["metadata"].get("title", ""), self.text_address(name),
                   _text(page.get("abstract", [])))
            (self.articles if page.get("kind") == "article" else self.symbols).append(row)

    def address(self, page=None):
        """The address of a page, or of the module's own."""
        path = f"{self.base}/documentation/{self.name.lower()}/"
        return path + page.lower() + "/" if page else path

    def text_address(self, page=None):
        """The address of a page's Markdown; of the page itself where there is none."""
        path = self.name.lower() + (f"/{page}.md" if page else ".md")
        if os.path.exists(os.path.join(self.folder, path)):
            return f"{self.base}/data/documentation/{path}"
        return self.address(page)

    def list(self, file):
        """Writes the lines of the module."""
        file.write(f"\n## {self.name}\n\n")
        file.write(f"- [{self.name}]({self.text_address()}): {self.abstract}\n")
        for title, address, abstract in self.articles + self.symbols:
            file.write(f"- [{title}]({address}): {abstract}\n")

    @staticmethod
    def _page(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def _text(inline):
    """Text, code and links as plain text."""
    return "".join(
        part.get("text") or part.get("code") or part.get("title")
        or _text(part.get("inlineContent", [])) or part.get("identifier", "").split("/")[-1]
        for part in inline)


def _articles(sources, module):
    """The articles of a module's catalogue, in the order in which its page lists them."""
    folder = os.path.join(sources, module, module + ".docc")
    if not os.path.isdir(folder):
        return []
    names = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
    first = module + ".md"
    order = []
    if first in names:
        with open(os.path.join(folder, first), encoding="utf-8") as file:
            order = [name + ".md" for name in _PAGE_LINK.findall(file.read())]
    order = list(dict.fromkeys([first] + order + names))
    return [os.path.join(folder, name) for name in order if name in names]


def _write_article(file, path, module):
    """Writes an article with its address, and without what its readers do not see."""
    with open(path, encoding="utf-8") as source:
        text = _CONTEXT.sub("", source.read())
    page = os.path.basename(path)[: -len(".md")]
    text = _NAMED_LINK.sub(r"\1", text)
    text = _PAGE_LINK.sub(lambda match: match.group(1).split("/")[-1], text)
    text = _SYMBOL_LINK.sub(r"`\1`", text)
    address = module.address(None if page == module.name else page)
    file.write(f"<!-- {address} -->\n\n{text.strip()}\n\n")
