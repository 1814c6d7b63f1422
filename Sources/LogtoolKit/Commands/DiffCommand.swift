internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Compares two states.
struct DiffCommand: RemoteCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "List the keys that differ between two states, or from those of a peer.",
    discussion: """
      Examples:
        logtool diff S 1000 2000
        logtool diff S 1000 2000 --prefix note/ --output jsonl
        logtool diff S T
        logtool diff S https://sync.example.org/notes --json

      A line begins with + (added), - (removed) or ~ (changed), and for a change ends with what \
      changed: value, labels, hash. Exit status 2 when there are differences.

      With one argument, the URL or directory of a peer, sums are compared, and only parts whose \
      sums differ are looked into: - is only here, + only there. What is not synced yet counts as \
      different; what is of class cache does not count.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var library: LibraryKeyOptions
  @OptionGroup var options: RemoteOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(
    help: "The state to come from: \(Moment.form); or a URL or a store's directory.",
    completion: .directory)
  var from: String

  @Argument(help: "The state to come to.", transform: Moment.parse)
  var to: Moment?

  @Option(help: "Keys that begin with this.")
  var prefix = ""

  var remote: RemoteTarget? { to == nil ? RemoteTarget(argument: from) : nil }

  func validate() throws {
    if to != nil, Moment(argument: from) == nil {
      throw ValidationError("'\(from)' is not \(Moment.form)")
    }
    if to == nil, !prefix.isEmpty {
      throw ValidationError("--prefix is for two states of one store")
    }
  }

  func run(_ console: Console) throws {
    guard let to, let from = Moment(argument: from) else {
      return try RemoteDifference(console: console, keys: keys.style)
        .tell(store, RemoteTarget(argument: from), options)
    }
    let prefix = try keys.bytes(prefix, "prefix")
    let counts = try StoreAccess(store, console).read { store in
      var printer = try DifferencePrinter(console, keys.style)
      var comparison = try StateComparison(
        from: try store.view(at: from.sequence(in: store, console)),
        to: try store.view(at: to.sequence(in: store, console)), prefix: prefix)
      while let difference = try comparison.next() {
        if library.shows(difference.key, prefix: prefix) { try printer.add(difference) }
      }
      try printer.end()
      return printer.counts
    }
    let total = counts.added + counts.removed + counts.changed
    console.say("\(counts.added) added, \(counts.removed) removed, \(counts.changed) changed")
    if total > 0 { throw ToolError.silent(.findings) }
  }
}

/// Prints differences and counts them.
private struct DifferencePrinter {
  private let console: Console
  private let printer: EntryPrinter
  private var list: ListPrinter
  private(set) var counts = (added: 0, removed: 0, changed: 0)

  init(_ console: Console, _ keys: KeyStyle) throws(ToolError) {
    self.console = console
    printer = EntryPrinter(console: console, keys: keys)
    list = try ListPrinter(console, "differences", empty: "")
  }

  mutating func add(_ difference: StateDifference) throws(ToolError) {
    let name: String
    let sign: String
    switch difference.kind {
    case .added:
      (name, sign) = ("added", console.paint("+", .green))
      counts.added += 1
    case .removed:
      (name, sign) = ("removed", console.paint("-", .red))
      counts.removed += 1
    case .changed:
      (name, sign) = ("changed", console.paint("~", .yellow))
      counts.changed += 1
    }
    let printer = printer
    try list.add {
      var members: [JSONValue.Member] = [
        .bytes("key", difference.key), .init("change", .string(name)),
        .init("from", difference.from.map { .unsigned($0) } ?? .null),
        .init("to", difference.to.map { .unsigned($0) } ?? .null),
      ]
      if difference.kind == .changed {
        members.append(.init("changed", .array(difference.fields.map { .string($0) })))
      }
      return .object(members)
    } text: { () throws(ToolError) in
      let fields = difference.fields.joined(separator: ", ")
      try printer.appendLine(
        key: difference.key, before: [sign], after: fields.isEmpty ? [] : [Array(fields.utf8)])
    }
  }

  func end() throws(ToolError) { try list.end() }
}
