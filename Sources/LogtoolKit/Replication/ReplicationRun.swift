internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// One round with a peer, with progress on a terminal.
struct ReplicationRun {
  let console: Console
  let direction: SyncDirection
  let name: String
  let target: RemoteTarget

  /// Replicates until everything is settled.
  func once(_ store: Store, _ peer: any Peer) throws -> SyncReport {
    var configuration = Replicator.Configuration(direction: direction)
    configuration.target = target.text
    let replicator = try store.replicator(
      named: name, peer: peer, configuration: configuration)
    let total = direction.pushes ? try store.blocking.pending(for: name).entries : nil
    var progress = Progress(
      console, direction.pushes ? "sending" : "taking", unit: .entries, total: total)
    defer { progress.finish() }
    return try Waiting.run(console) {
      let status = replicator.status
      progress.update(direction.pushes ? status.pushed : status.pulled)
    } _: {
      try await replicator.syncOnce()
    }
  }
}

/// What a round has done, in words and as JSON.
struct ReplicationOutcome {
  var report: SyncReport

  var members: [JSONValue.Member] {
    [
      .init("batches", .integer(report.batches)), .init("applied", .integer(report.applied)),
      .init("duplicates", .integer(report.duplicates)),
      .init("conflicts", .integer(report.conflicts)), .init("parked", .integer(report.parked)),
      .init("taken", .integer(report.pulled)),
      .init("pending", .integer(report.pending.entries)),
      .init("parked_in_all", .integer(report.pending.parked)),
      .init("to_decide", .integer(report.pending.needsDecision)),
    ]
  }

  /// What there is to say besides how much was sent or taken.
  var remarks: String {
    var text = ""
    if report.duplicates > 0 {
      text += "; the peer had \(HumanText.count(report.duplicates)) already"
    }
    if report.conflicts > 0 { text += "; \(HumanText.count(report.conflicts)) in conflict" }
    if report.parked > 0 {
      text += "; \(HumanText.count(report.parked)) refused, see logtool parked"
    }
    return text
  }
}
