internal import ArgumentParser
internal import TidemarkEngine
internal import TidemarkSync

/// The commands as the argument parser knows them: its own dump of the help, which is JSON.
struct HelpTree {
  struct Command {
    var name: String
    var abstract: String
    var discussion: String
    var arguments: [Argument]
  }

  struct Argument: Hashable {
    /// `--limit`, `-n`; empty for what has no name.
    var names: [String]
    var valueName: String
    var takesValue: Bool
    var abstract: String
    var values: [String]
    var defaultValue: String
    var isOptional: Bool
    var isRepeating: Bool
  }

  let root: Command
  /// The commands that the help shows.
  let commands: [Command]

  init() throws {
    let tree = try JSONTree(Array(Logtool._dumpHelp().utf8).rawSpan)
    let top = Node(tree: tree, value: tree.root)["command"]
    root = Self.command(top)
    commands = top["subcommands"].elements.filter(\.isShown).map(Self.command)
  }

  private static func command(_ node: Node) -> Command {
    Command(
      name: node["commandName"].text, abstract: node["abstract"].text,
      discussion: node["discussion"].text,
      arguments: node["arguments"].elements.filter(\.isShown).map(argument))
  }

  private static func argument(_ node: Node) -> Argument {
    let names = node["names"].elements.map { name in
      (name["kind"].text == "short" ? "-" : "--") + name["name"].text
    }
    return Argument(
      names: names, valueName: node["valueName"].text, takesValue: node["kind"].text != "flag",
      abstract: node["abstract"].text, values: node["allValues"].elements.map(\.text),
      defaultValue: node["defaultValue"].text, isOptional: node["isOptional"].isTrue,
      isRepeating: node["isRepeating"].isTrue)
  }
}

/// A value of the dump; what is not there is null.
private struct Node {
  let tree: JSONTree
  let value: JSONTree.Value

  subscript(name: String) -> Node {
    guard case .object(let members) = value,
      let member = members.first(where: { tree.bytes($0.name) == Array(name.utf8) })
    else { return Node(tree: tree, value: .null) }
    return Node(tree: tree, value: member.value)
  }

  var elements: [Node] {
    guard case .array(let elements) = value else { return [] }
    return elements.map { Node(tree: tree, value: $0) }
  }

  var text: String {
    guard case .string(let range) = value else { return "" }
    return String(decoding: tree.bytes(range), as: UTF8.self)
  }

  var isTrue: Bool {
    guard case .bool(let isTrue) = value else { return false }
    return isTrue
  }

  var isShown: Bool { self["shouldDisplay"].isTrue }
}
