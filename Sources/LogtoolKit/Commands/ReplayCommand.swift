internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// Sends what is not synced to a peer.
struct ReplayCommand: RemoteCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Send what a store has and a peer lacks: a server, or another store.",
    discussion: """
      Examples:
        logtool replay S --to https://sync.example.org/notes
        logtool replay S --to /media/stick/notes.tidemark
        logtool replay S --to T --dry-run      # how much would go
        logtool replay S --to T --follow       # whenever somebody has written

      The newest entry of every key goes, deletes too, with key, value, labels, hash and own time; \
      the store at T, which is created when there is none, judges it. The store remembers under \
      the peer's name what has been sent, so a second run sends nothing, also after a crash; see \
      logtool pending and peers. What others have written there is not taken: see pull.

      Entries that the peer refuses are parked, and the others go on. Keys that have changed on \
      both sides end as here. Exit status 69 when the peer cannot be reached.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var options: RemoteOptions
  @OptionGroup var replication: ReplicationOptions

  @Argument(help: "The store to read.", completion: .directory)
  var store: String

  @Option(
    name: .customLong("to"), help: "A URL, or the directory of a store.", completion: .directory)
  var target: RemoteTarget

  @Option(help: "What the store knows the peer by; else the URL, or the directory's full path.")
  var name: String?

  @Flag(help: "Go on: send whenever something was written, until interrupted.")
  var follow = false

  @Flag(name: .customLong("dry-run"), help: "Only say how much would be sent; create nothing.")
  var isDryRun = false

  var remote: RemoteTarget? { target }

  func run(_ console: Console) throws {
    console.stopGracefully()
    try target.check(isNot: store)
    let name = try self.name ?? target.name()
    if isDryRun { return try tellPlan(name, console) }
    guard follow else { return try tell(try round(name, console), console) }
    try StoreFollower(store, console).run { try tell(try round(name, console), console) }
  }

  private func tellPlan(_ name: String, _ console: Console) throws {
    let pending = try StoreAccess(store, console).read { store in
      try store.blocking.pending(for: name)
    }
    guard console.settings.format == .text else {
      return try console.output.line(
        .object([
          .init("sent", .integer(0)), .init("to_send", .integer(pending.entries)),
          .init("bytes", .integer(pending.bytes)),
        ]))
    }
    console.say(
      "would send \(HumanText.count(pending.entries, "entry", "entries")), "
        + HumanText.size(pending.bytes))
  }

  private func round(_ name: String, _ console: Console) throws -> SyncReport {
    try StoreAccess(store, console).write { store in
      let peer = try options.open(target, .create, console)
      defer { try? Waiting.run(console) { await peer.close() } }
      try checkOther(store, peer)
      return try ReplicationRun(
        console: console, direction: .push, name: name, target: target,
        deletions: replication.deletions
      )
      .once(store, peer)
    }
  }

  private func checkOther(_ store: Store, _ peer: any Peer) throws(ToolError) {
    guard let other = peer as? StorePeer, other.handler.feedID.bytes == store.storeID else {
      return
    }
    throw ToolError(
      .failed, "source and target are the same store, or copies of it; give another target")
  }

  private func tell(_ report: SyncReport, _ console: Console) throws {
    let outcome = ReplicationOutcome(report: report)
    if console.settings.format == .text {
      let sent =
        report.pushed == 0
        ? "sent nothing: the peer has everything"
        : "sent \(HumanText.count(report.pushed, "entry", "entries"))"
      console.say(sent + outcome.remarks)
    } else {
      try console.output.line(
        .object(
          [.init("sent", .integer(report.pushed)), .init("to_send", .integer(0))]
            + outcome.members))
      try console.output.flush()
    }
  }
}
