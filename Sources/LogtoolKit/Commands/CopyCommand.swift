internal import ArgumentParser
internal import Tidemark
internal import TidemarkSync

/// Copies a database to another peer, through a store that is a replica of both.
///
/// The store knows source and target as one peer. So the replicator takes the target for the source
/// with a recreated feed: it compares by digest, and sends what that feed lacks.
struct CopyCommand: RemoteCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy what a peer has to another, through a store that takes and sends it.",
    discussion: """
      Examples:
        logtool copy S --from https://a.example.org/n --to https://b.example.org/n
        logtool copy S --from https://a.example.org/n --to ./n.tidemark

      What keys hold goes, with labels, own times and attachments; history, policies and leases do \
      not. Servers go on serving meanwhile. Keep S and copy again to take what has changed since, \
      deletes too; of a key that was changed at both the later change stays. So copy, let devices \
      use the target, and copy again: each device compares once, and sends what it has not sent.

      What the target refuses is parked in S: see logtool parked. Exit status 1 when something is; \
      69 when a peer cannot be reached: copy again.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var options: RemoteOptions
  @OptionGroup var replication: ReplicationOptions

  @Argument(
    help: "The store in between; it is created when there is none.", completion: .directory)
  var store: String

  @Option(
    name: .customLong("from"), help: "A URL, or the directory of a store.", completion: .directory)
  var source: RemoteTarget

  @Option(
    name: .customLong("to"), help: "A URL, or the directory of a store.", completion: .directory)
  var target: RemoteTarget

  @Option(
    name: .customLong("from-token-file"),
    help: ArgumentHelp(
      "A file with the token that the source's URL takes; without it TIDEMARK_TOKEN counts.",
      valueName: "file"),
    completion: .file())
  var sourceTokenFile: String?

  var remote: RemoteTarget? { source.isURL ? source : target }

  /// The peer name under which the store records its progress with the source and with the target:
  /// one name, so that the replicator takes either for the other with a recreated feed.
  private static let name = "copied"

  func run(_ console: Console) throws {
    console.stopGracefully()
    for peer in [source, target] {
      try peer.checkScheme()
      try peer.check(isNot: store)
    }
    var ofSource = options
    (ofSource.tokenFile, ofSource.keyFile) = (sourceTokenFile, nil)
    let taken = try round(.pull, source, by: ofSource, .write, console)
    // Pulled first, so that nothing sent overwrites a later change, or undoes a delete, of a device
    // that uses the target already.
    _ = try round(.pull, target, by: options, .create, console)
    let sent = try round(.push, target, by: options, .create, console)
    try tell(taken, sent, console)
  }

  private func round(
    _ direction: SyncDirection, _ place: RemoteTarget, by options: RemoteOptions,
    _ access: Store.Access, _ console: Console
  ) throws -> SyncReport {
    // The peer is opened before the store in between, which is created where there is none: a path
    // without a store, or an address that cannot be read, leaves no empty store behind.
    let peer = try options.open(place, access, console)
    defer { try? Waiting.run(console) { await peer.close() } }
    return try StoreAccess(store, console).write(creates: true) { store in
      try ReplicationRun(
        console: console, direction: direction, name: Self.name, target: place,
        deletions: replication.deletions, fetchesAttachments: direction == .pull
      )
      .once(store, peer)
    }
  }

  private func tell(_ taken: SyncReport, _ sent: SyncReport, _ console: Console) throws {
    let outcome = ReplicationOutcome(report: sent)
    if console.settings.format == .text {
      console.say(
        "took \(HumanText.count(taken.pulled, "entry", "entries")), sent "
          + "\(HumanText.count(sent.pushed))" + outcome.remarks)
    } else {
      var members = outcome.members.filter { $0.name != "taken" }
      members += [.init("taken", .integer(taken.pulled)), .init("sent", .integer(sent.pushed))]
      try console.output.line(.object(members))
    }
    let parked = sent.pending.parked
    guard parked > 0 else { return }
    throw ToolError(
      .failed,
      "\(HumanText.count(parked, "entry", "entries")) cannot be copied: see logtool parked")
  }
}
