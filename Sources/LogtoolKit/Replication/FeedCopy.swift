internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Copies what the keys of one peer hold to another one, as a replica that pulls from the first and
/// pushes to the second.
///
/// Its id follows from those of both feeds, and each change has its offset in the source as
/// sequence. So a copy that is made again replaces what the one before has written. What others
/// have written at the target stays.
struct FeedCopy {
  /// The counts of the changes by what became of them.
  struct Report: Sendable {
    var copied = 0
    /// The target had the same.
    var same = 0
    /// Others have changed the key at the target, which keeps that.
    var kept = 0
    /// The target refuses it for good.
    var refused = 0
    /// The source lacks the content of the attachment.
    var missing = 0
    /// The target's reason for the last refusal.
    var refusal = ""
  }

  private let source: any Peer
  private let target: any Peer
  private let replica: ReplicaID
  /// The last batch at the target.
  private var mark: ReplicaMark
  private let pageLimits: SyncLimits
  private let batchLimits: SyncLimits
  private let reach: UInt64?
  /// Keys whose attachment the source lacks, as far as no later entry replaces it.
  private var missing: Set<[UInt8]> = []
  private var report = Report()

  /// - Throws: `ToolError` when both are the same feed.
  init(from source: any Peer, to target: any Peer) async throws {
    (self.source, self.target) = (source, target)
    // Neither feed keeps anything for a replica that says it does not read.
    let nobody = ReplicaID(unchecked: Array(repeating: 0xff, count: ReplicaID.byteCount))
    let from = try await source.hello(HelloRequest(replica: nobody, reads: false))
    let feed = try await target.hello(HelloRequest(replica: nobody, reads: false)).feed
    guard from.feed != feed else {
      throw ToolError(.failed, "source and target are the same database; give another target")
    }
    let hash = SHA256.hash((from.feed.bytes + feed.bytes).rawSpan)
    replica = ReplicaID(unchecked: Array(hash.prefix(ReplicaID.byteCount)))
    // Each key is compared before it is written.
    let to = try await target.hello(
      HelloRequest(replica: replica, hasResynced: true, reads: false))
    (mark, reach, batchLimits) = (to.mark, to.reach, to.limits)
    pageLimits = SyncLimits(
      changes: min(from.limits.changes, to.limits.changes),
      bytes: min(from.limits.bytes, to.limits.bytes))
  }

  /// Copies until nothing more is in the source's feed.
  /// - Parameter progress: is called with the counts now and then.
  mutating func run(_ progress: @Sendable (Report) -> Void) async throws -> Report {
    var cursor = Position.beginning
    while true {
      let page = try await source.pull(
        PullRequest(replica: replica, after: cursor, limits: pageLimits))
      if page.entries.isEmpty, page.cursor == cursor { break }
      try await copy(page.entries.filter { $0.kind == .put || $0.kind == .delete })
      cursor = page.cursor
      report.missing = missing.count
      progress(report)
    }
    return report
  }

  private mutating func copy(_ entries: [FeedEntry]) async throws {
    let others = try await heldByOthers(entries.map(\.key))
    var batch: [PushedChange] = []
    var bytes = 0
    for entry in entries {
      missing.remove(entry.key)
      if let held = others[entry.key] {
        let isSame = entry.kind == .put && held.kind == .put && held.content == entry.content
        if isSame { report.same += 1 } else { report.kept += 1 }
        continue
      }
      if let attachment = entry.content.attachment {
        guard try await copy(attachment, of: entry.key) else {
          missing.insert(entry.key)
          continue
        }
      }
      let size = entry.key.count + entry.content.value.count
      if !batch.isEmpty, batch.count >= batchLimits.changes || bytes + size > batchLimits.bytes {
        try await push(batch)
        (batch, bytes) = ([], 0)
      }
      batch.append(
        PushedChange(
          sequence: entry.position.offset, kind: entry.kind == .put ? .put : .delete,
          key: entry.key, content: entry.content, commitTime: entry.commitTime, time: entry.time))
      bytes += size
    }
    if !batch.isEmpty { try await push(batch) }
  }

  /// The entries at the target of those keys that somebody else has written there.
  private func heldByOthers(_ keys: [[UInt8]]) async throws -> [[UInt8]: FeedEntry] {
    var held: [[UInt8]: FeedEntry] = [:]
    var rest = keys[...]
    while !rest.isEmpty {
      let answer = try await target.values(ValuesRequest(replica: replica, keys: Array(rest)))
      for entry in answer.entries where entry.operation.replica != replica {
        held[entry.key] = entry
      }
      guard answer.answered > 0 else {
        throw PeerError(.malformed, "the target answers for none of the keys")
      }
      rest = rest.dropFirst(answer.answered)
    }
    return held
  }

  private mutating func push(_ changes: [PushedChange]) async throws {
    let id = BatchID(UInt64.random(in: 1...UInt64.max))
    let answer = try await target.push(
      PushRequest(
        replica: replica, number: mark.number + 1, batchID: id, previousBatchID: mark.batchID,
        reach: reach, changes: changes))
    guard answer.mark.number == mark.number + 1, answer.mark.batchID == id,
      answer.mark.verdicts.count == changes.count
    else { throw ToolError(.failed, "another copy of the same database is being made") }
    mark = answer.mark
    for (change, verdict) in zip(changes, mark.verdicts) {
      switch verdict {
      case .applied: report.copied += 1
      case .duplicate: report.same += change.kind == .put ? 1 : 0
      case .conflict, .lost, .aborted: report.kept += 1
      case .rejected(let rejection):
        report.refused += 1
        report.refusal = rejection.message
      }
    }
  }

  /// Copies the content of an attachment, from where an earlier copy has left it.
  /// - Returns: false if the source lacks it.
  private func copy(_ attachment: AttachmentReference, of key: [UInt8]) async throws -> Bool {
    var request = AttachRequest(
      replica: replica, key: key, attachment: attachment, offset: 0, bytes: [])
    while true {
      let answer = try await target.attach(request)
      if let rejection = answer.rejection {
        throw ToolError(.failed, "the target refuses an attachment: \(rejection.message)")
      }
      if answer.received == attachment.length { return true }
      guard request.bytes.isEmpty || answer.received > request.offset else {
        throw PeerError(.malformed, "the target stores nothing of an attachment")
      }
      let part = try await source.fetch(
        ContentRequest(
          replica: replica, key: key, attachment: attachment, offset: answer.received,
          limit: AttachRequest.mostBytes))
      guard let bytes = part.bytes, !bytes.isEmpty else { return false }
      (request.offset, request.bytes) = (answer.received, bytes)
    }
  }
}
