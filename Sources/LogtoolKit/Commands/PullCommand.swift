internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// Takes what a peer has.
struct PullCommand: RemoteCommand {
  static let configuration = CommandConfiguration(
    commandName: "pull",
    abstract: "Take what a peer has and a store lacks; the store is created when there is none.",
    discussion: """
      Examples:
        logtool pull S --from https://sync.example.org/notes
        logtool pull S --from /media/stick/notes.tidemark
        logtool pull S --from https://sync.example.org/notes --attachments

      Values and deletes come, and the store remembers under the peer's name how far it has taken \
      the peer's feed. Keys that were changed here and not sent yet keep their local values. \
      The content of attachments stays where it is unless --attachments is given, which also \
      fetches what earlier runs have left; one that was cut off goes on where it was. \
      Nothing is sent: see replay. Exit status 69 when the peer cannot be reached.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var options: RemoteOptions
  @OptionGroup var replication: ReplicationOptions

  @Argument(help: "The store to write to.", completion: .directory)
  var store: String

  @Option(
    name: .customLong("from"), help: "A URL, or the directory of a store.", completion: .directory)
  var source: RemoteTarget

  @Option(help: "What the store knows the peer by; else the URL, or the directory's full path.")
  var name: String?

  @Flag(help: "Fetch the content of attachments, too.")
  var attachments = false

  var remote: RemoteTarget? { source }

  func run(_ console: Console) throws {
    console.stopGracefully()
    try source.check(isNot: store)
    let name = try self.name ?? source.name()
    // Opened first, so that no store is created for nothing.
    let peer = try options.open(source, .write, console)
    let report: SyncReport
    do {
      defer { try? Waiting.run(console) { await peer.close() } }
      try check(peer, console)
      report = try StoreAccess(store, console).write(creates: true) { store in
        try ReplicationRun(
          console: console, direction: .pull, name: name, target: source,
          deletions: replication.deletions, fetchesAttachments: attachments
        )
        .once(store, peer)
      }
    }
    let outcome = ReplicationOutcome(report: report)
    guard console.settings.format == .text else {
      return try console.output.line(.object(outcome.members))
    }
    let taken =
      report.pulled == 0
      ? "took nothing: the store has everything"
      : "took \(HumanText.count(report.pulled, "entry", "entries"))"
    console.say(taken + outcome.remarks)
  }

  /// A peer that does not answer must not leave a new store behind.
  private func check(_ peer: any Peer, _ console: Console) throws {
    guard let other = peer as? StorePeer else { return }
    let own: [UInt8]?
    do { own = try StoreAccess(store, console).read { $0.storeID } } catch let error
      as TidemarkError
      where error.code == .storeMissing
    { own = nil }
    guard other.handler.feedID.bytes != own else {
      throw ToolError(
        .failed, "source and target are the same store, or copies of it; give another source")
    }
  }
}
