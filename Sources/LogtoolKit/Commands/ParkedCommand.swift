internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Deals with entries that a peer has refused.
struct ParkedCommand: ToolCommand {
  enum Action: String, ExpressibleByArgument, CaseIterable { case list, retry, discard }

  static let configuration = CommandConfiguration(
    commandName: "parked",
    abstract: "List entries that a peer has refused, send them again, or give them up.",
    discussion: """
      Examples:
        logtool parked S
        logtool parked S retry note/7
        logtool parked S discard note/7 note/9
        logtool parked S retry --all

      retry writes the entry once more, so that the next replay sends it. discard gives the key \
      back the value that the peer has, and lists the keys of entries that were to come after it. \
      A new put or delete of the key takes the place of what was refused, too.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "What to do: list, retry or discard.")
  var action = Action.list

  @Argument(help: "The keys.")
  var chosen: [String] = []

  @Flag(help: "All of them.")
  var all = false

  @Option(help: "What the store knows the peer by; needed when it has several.")
  var peer: String?

  func validate() throws {
    if action == .list, all || !chosen.isEmpty {
      throw ValidationError("list takes no keys; see logtool pending --list for a choice")
    }
    if action != .list, all == !chosen.isEmpty {
      throw ValidationError("give keys, or --all")
    }
  }

  func run(_ console: Console) throws {
    let access = StoreAccess(store, console)
    if action == .list { return try access.read { try printList($0, console) } }
    let wanted = try Set(chosen.map { try keys.key($0) })
    try access.write { try perform($0, wanted, console) }
  }

  private func printList(_ store: Store, _ console: Console) throws {
    let printer = EntryPrinter(console: console, keys: keys.style)
    var list = try ListPrinter(console, "parked", empty: "nothing is parked")
    for entry in try store.blocking.parked(for: peer) {
      try list.add {
        .object([
          .bytes("key", entry.key.bytes), .init("sequence", .unsigned(entry.sequence)),
          .init("op", .string("\(entry.kind)")), .time("committed", entry.commitTime),
          .init("code", .string(entry.rejection.code)),
          .init("reason", .string(entry.rejection.message)),
        ])
      } text: { () throws(ToolError) in
        try printer.appendLine(
          key: entry.key.bytes,
          after: [
            Array(String(entry.sequence).utf8), Array("\(entry.kind)".utf8),
            Array(entry.rejection.code.utf8), Array(entry.rejection.message.utf8),
          ])
      }
    }
    try list.end()
  }

  private func perform(_ store: Store, _ wanted: Set<[UInt8]>, _ console: Console) throws {
    let entries = try store.blocking.parked(for: peer).filter {
      all || wanted.contains($0.key.bytes)
    }
    guard all || Set(entries.map(\.key.bytes)) == wanted else {
      throw ToolError(.failed, "not all of the keys are parked; see logtool parked \(self.store)")
    }
    var dependents: [[UInt8]] = []
    let sequences = entries.map(\.sequence)
    if action == .retry {
      try store.blocking.retryParked(all: sequences, for: peer)
    } else {
      dependents = try store.blocking.discardParked(all: sequences, for: peer).map(\.bytes)
    }
    if console.settings.format == .text {
      let word = action == .retry ? "goes again with the next replay" : "was given up"
      let words = action == .retry ? "go again with the next replay" : "were given up"
      console.say("\(HumanText.count(entries.count, "entry \(word)", "entries \(words)"))")
      let printer = EntryPrinter(console: console, keys: keys.style)
      for key in dependents { try printer.appendKey(key) }
    } else {
      try console.output.line(
        .object([
          .init(action == .retry ? "retried" : "discarded", .integer(entries.count)),
          .init("dependents", .array(dependents.map { .object([.bytes("key", $0)]) })),
        ]))
    }
  }
}
