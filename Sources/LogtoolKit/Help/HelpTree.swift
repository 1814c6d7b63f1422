internal import ArgumentParser
internal import TidemarkEngine
internal import TidemarkNDJSON

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
    let tape = try JSONTape(Array(Logtool._dumpHelp().utf8))
    let top = Node(tape: tape, index: 0)["command"]
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

/// A value of the dump; nil stands for what is not there.
private struct Node {
  let tape: JSONTape
  let index: Int?

  private var kind: JSONTape.Kind? { index.map { tape[$0].kind } }

  subscript(name: String) -> Node {
    guard let index, kind == .object else { return Node(tape: tape, index: nil) }
    let member = tape.members(of: index).first {
      tape.characters(of: $0).elementsEqual(name.utf8)
    }
    return Node(tape: tape, index: member.map { $0 + 1 })
  }

  var elements: [Node] {
    guard let index, kind == .array else { return [] }
    return tape.elements(of: index).map { Node(tape: tape, index: $0) }
  }

  var text: String {
    guard let index, kind == .string else { return "" }
    return String(decoding: tape.characters(of: index), as: UTF8.self)
  }

  var isTrue: Bool { kind == .yes }

  var isShown: Bool { self["shouldDisplay"].isTrue }
}
