"""Makes symbol graphs of several modules fit together as one documentation.

The comments of a library name symbols of the libraries that it imports. docc finds these only by
links that begin with a library's name, as in ``/Tidemark/Store``, so that name is put in.
"""

import glob
import json
import os
import re

_LINK = re.compile(r"``([^`]+)``")
_DISAMBIGUATION = re.compile(r"-[a-z0-9.]+$")
_SYNTHESIZED = "::SYNTHESIZED::"


def complete(folders, shown_by):
    """Rewrites the graphs of modules in place.

    - Parameters: the folder of each module's graphs, and the module that shows the symbols of
      another.
    - Returns: the modules without symbols.
    """
    modules = {name: _read(folder) for name, folder in folders.items()}
    paths = {name: _paths(graphs) for name, graphs in modules.items()}
    for name, graphs in modules.items():
        others = {other: own for other, (own, _) in paths.items() if other != name}
        links = _Links(*paths[name], others, shown_by)
        for graph in graphs.values():
            for symbol in graph["symbols"]:
                for line in symbol.get("docComment", {}).get("lines", []):
                    line["text"] = _LINK.sub(links.replace, line["text"])
        _write(graphs)
    return [name for name, graphs in modules.items() if not any(paths[name])]


def _read(folder):
    """The graphs of a module by their paths."""
    graphs = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.symbols.json"))):
        with open(path, encoding="utf-8") as file:
            graph = json.load(file)
        _drop_foreign(graph)
        # The same types are in one module on Apple's systems and in another one elsewhere.
        if "@FoundationEssentials" in path:
            os.remove(path)
            path = path.replace("@FoundationEssentials", "@Foundation")
            for symbol in graph["symbols"]:
                if "swiftExtension" in symbol:
                    symbol["swiftExtension"]["extendedModule"] = "Foundation"
        graphs[path] = graph
    return graphs


def _drop_foreign(graph):
    """Drops what the standard library adds to every type, such as `!=`."""
    dropped = set()
    for symbol in graph["symbols"]:
        identifier = symbol["identifier"]["precise"]
        origin = identifier.split(_SYNTHESIZED)[0]
        if _SYNTHESIZED in identifier and "Tidemark" not in origin:
            dropped.add(identifier)
    graph["symbols"] = [
        symbol for symbol in graph["symbols"] if symbol["identifier"]["precise"] not in dropped]
    graph["relationships"] = [
        relation for relation in graph["relationships"]
        if relation["source"] not in dropped and relation["target"] not in dropped]


def _paths(graphs):
    """The paths of a module's own symbols, as in `Store/put(_:_:)`, and of the ones by which it
    extends other modules, which are in files of their own."""
    own, extensions = set(), set()
    for path, graph in graphs.items():
        found = extensions if "@" in os.path.basename(path) else own
        found.update("/".join(symbol["pathComponents"]) for symbol in graph["symbols"])
    return own, extensions


def _write(graphs):
    for path, graph in graphs.items():
        with open(path, "w", encoding="utf-8") as file:
            json.dump(graph, file)


class _Links:
    """The links in the comments of a module."""

    def __init__(self, own, extensions, others, shown_by):
        self.extensions, self.others, self.shown_by = extensions, others, shown_by
        # A nested type may have the name of another library's type: such a link stays.
        self.own_names = {part for path in own for part in path.split("/")}

    def replace(self, match):
        """The link, with the module's name where it leads to another library."""
        link = match.group(1)
        first, _, rest = link.partition("/")
        if first in self.shown_by:
            if _plain(rest) in self.extensions:
                return match.group(0)
            return f"``/{self.shown_by[first]}/{rest}``"
        if first in self.others:
            return f"``/{link}``"
        if first in self.own_names or _plain(link) in self.extensions:
            return match.group(0)
        for module, found in self.others.items():
            if first in found:
                return f"``/{module}/{link}``"
        return match.group(0)


def _plain(link):
    """A link without the suffix that tells overloads apart."""
    return link if link.endswith(")") else _DISAMBIGUATION.sub("", link)
