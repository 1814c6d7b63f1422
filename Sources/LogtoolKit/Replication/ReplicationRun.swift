public import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
public import TidemarkSync

/// One round with a peer, with progress on a terminal.
struct ReplicationRun {
  let console: Console
  let direction: SyncDirection
  let name: String
  let target: RemoteTarget
  /// The decision about keys that turn out to be gone at the peer in great number.
  let deletions: DeletionsDecision?
  /// Whether the content of attachments is fetched.
  var fetchesAttachments = false

  /// Replicates until everything is settled.
  func once(_ store: Store, _ peer: any Peer) throws -> SyncReport {
    var configuration = Replicator.Configuration(direction: direction)
    configuration.target = target.text
    if fetchesAttachments { configuration.attachments.fetching = .eager(upTo: .max) }
    let replicator = try store.replicator(
      named: name, peer: peer, configuration: configuration)
    // Counting what is pending reads all of it.
    let total =
      direction.pushes && console.showsProgress
      ? try store.blocking.pending(for: name).entries : nil
    var progress = Progress(
      console, direction.pushes ? "sending" : "taking", unit: .entries, total: total)
    defer { progress.finish() }
    let report = try Waiting.run(console) {
      let status = replicator.status
      progress.update(direction.pushes ? status.pushed : status.pulled)
    } _: { [deletions] in
      do throws(TidemarkError) { return try await replicator.syncOnce() } catch {
        guard let undecided = error.cause as? UndecidedDeletionsError else { throw error }
        guard let deletions else {
          throw ToolError(
            .failed,
            "\(HumanText.count(undecided.keys)) keys are gone at the peer; nothing was done about "
              + "it: --deletions accept deletes them here, too, "
              + "--deletions restore sends them again"
          )
        }
        try await replicator.decideDeletions(deletions)
        return try await replicator.syncOnce()
      }
    }
    if fetchesAttachments { try warnOfAttachments(store, console) }
    return report
  }

  /// Says how many attachments have no content here, since the peer lacks it or has others by now.
  private func warnOfAttachments(_ store: Store, _ console: Console) throws {
    let missing = try store.engine.entriesWithoutContent().count
    guard missing > 0 else { return }
    let count = HumanText.count(missing, "attachment", "attachments")
    console.warn("the content of \(count) could not be fetched; pull again, or ask where it is")
  }
}

/// The options of commands that replicate.
struct ReplicationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "When many keys are found to be gone at the peer: accept that here, or restore them there.",
      valueName: "accept|restore"))
  var deletions: DeletionsDecision?
}

extension DeletionsDecision: ExpressibleByArgument {
  /// From the word of an option.
  public init?(argument: String) {
    switch argument {
    case "accept": self = .accept
    case "restore": self = .restore
    default: return nil
    }
  }

  /// The words.
  public static var allValueStrings: [String] { ["accept", "restore"] }
}

/// The outcome of a round, in words and as JSON.
struct ReplicationOutcome {
  var report: SyncReport

  var members: [JSONValue.Member] {
    [
      .init("batches", .integer(report.batches)), .init("applied", .integer(report.applied)),
      .init("duplicates", .integer(report.duplicates)),
      .init("conflicts", .integer(report.conflicts)), .init("parked", .integer(report.parked)),
      .init("taken", .integer(report.pulled)),
      .init("attachment_bytes_sent", .integer(report.attachmentBytesSent)),
      .init("attachment_bytes_taken", .integer(report.attachmentBytesTaken)),
      .init("pending", .integer(report.pending.entries)),
      .init("parked_in_all", .integer(report.pending.parked)),
      .init("to_decide", .integer(report.pending.needsDecision)),
    ]
  }

  /// The remarks besides how much was sent or taken.
  var remarks: String {
    var text = ""
    let attached = report.attachmentBytesSent + report.attachmentBytesTaken
    if attached > 0 { text += "; \(HumanText.size(attached)) of attachments" }
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
