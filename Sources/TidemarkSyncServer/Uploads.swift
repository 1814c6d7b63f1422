internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The name of a content that comes ahead of its change: its hash and length, and its owner.
package typealias UploadName = AttachmentFiles.PartName

/// The contents that come, or have come, for changes that a feed does not have yet: attachments,
/// and values that are too large to travel with their changes.
///
/// A content is filed under its hash, its length, the replica that sends it and the reach of that
/// one's authorization. Replicas and hashes are no secrets, so nobody who reaches other entries may
/// see by them what waits, or take it for an entry of its own.
struct Uploads: Sendable {
  private struct Row {
    var part: AttachmentPartFile
    /// The order in which uploads began.
    var number: Int
    /// The time at which bytes of the upload last arrived, and its length then.
    var progress: (time: UInt64, bytes: Int)
  }

  /// Bytes of a content that count as progress. One that comes more slowly than so many in
  /// ``StoreContents/millisecondsUndisturbed`` only keeps room from others.
  private static let leastProgress = 256 << 10

  private var rows: [UploadName: Row] = [:]
  private var begun = 0

  /// The owners that share room with one: those of the same reach, since a token can be used under
  /// ever new replicas. Where it reaches everything, replicas are all that tells callers apart.
  private static func account(_ owner: [UInt8]) -> [UInt8] {
    let reach = Array(owner.prefix(ReplicaID.byteCount))
    return reach == ReplicaID.none.bytes ? owner : reach
  }

  /// How many there are.
  var count: Int { total { $0.isOver ? 0 : 1 } }

  /// The sum of something over all contents.
  func total(_ measure: (AttachmentPartFile) -> Int) -> Int {
    rows.values.reduce(0) { $0 + measure($1.part) }
  }

  /// The upload of a name, unless it is over: it was given up, or has become an attachment.
  subscript(name: UploadName) -> AttachmentPartFile? {
    rows[name].flatMap { $0.part.isOver ? nil : $0.part }
  }

  mutating func insert(_ part: AttachmentPartFile, _ name: UploadName) {
    guard rows[name]?.part !== part else { return }
    rows = rows.filter { !$0.value.part.isOver }
    begun += 1
    rows[name] = Row(part: part, number: begun, progress: (part.touched, part.storedBytes))
  }

  /// Takes note of what has come of a content.
  mutating func notePart(of name: UploadName, at now: UInt64) {
    guard let row = rows[name] else { return }
    let more = row.part.storedBytes - row.progress.bytes
    guard more >= Self.leastProgress || (more > 0 && row.part.mayBeWhole) else { return }
    rows[name]?.progress = (now, row.progress.bytes + more)
  }

  // MARK: Making room

  /// Gives up others so that more bytes of a content fit within bounds.
  /// - Parameter idle: an upload that has made some progress since then stays.
  mutating func makeRoom(
    for more: Int, of name: UploadName, within options: SyncHandler.Options, idleSince idle: UInt64
  ) throws(PeerError) {
    let isNew = self[name] == nil ? 1 : 0
    // Whole contents wait for their batch, which may name as many.
    let bounds: [(most: Int, more: Int, measure: (AttachmentPartFile) -> Int)] = [
      (options.attachmentUploads, isNew, { $0.mayBeWhole ? 0 : 1 }),
      (options.attachmentUploads + options.limits.changes, isNew, { $0.isOver ? 0 : 1 }),
      (options.attachmentUploadBytes, more, { $0.storedBytes }),
    ]
    for bound in bounds where bound.more > 0 {
      while total(bound.measure) + bound.more > bound.most {
        guard
          dropSlow(since: idle, but: name, bound.measure)
            || dropSurplus(for: name.owner, bound.more, bound.measure)
        else {
          throw PeerError(.busy, "too many contents are on their way", retryAfter: .seconds(10))
        }
      }
    }
  }

  /// Gives up contents that nobody has gone on with since.
  mutating func dropUntouched(since time: UInt64, but name: UploadName? = nil) {
    let old = rows.filter { $1.part.touched < time && $0 != name }
    for (name, _) in old.sorted(by: { $0.value.number < $1.value.number }) { drop(name) }
  }

  /// Gives up the content that has made no progress for longest.
  /// - Parameters:
  ///   - time: one that has made some since then stays.
  ///   - name: stays, too.
  ///   - measure: what is to become less.
  /// - Returns: false when there is none.
  private mutating func dropSlow(
    since time: UInt64, but name: UploadName, _ measure: (AttachmentPartFile) -> Int
  ) -> Bool {
    let slow = rows.filter { $1.progress.time < time && $0 != name && measure($1.part) > 0 }
    let oldest = slow.min {
      ($0.value.part.touched, $0.value.number) < ($1.value.part.touched, $1.value.number)
    }
    guard let oldest else { return false }
    drop(oldest.key)
    return true
  }

  /// Gives up the newest content of whoever has most, if that is more than another caller would
  /// have with what it is about to get. The only content of a caller stays: it would be sent again,
  /// and would take another one's place in turn.
  /// - Parameters:
  ///   - owner: whoever asks for room.
  ///   - more: how much.
  ///   - measure: of what.
  /// - Returns: false when there is none.
  private mutating func dropSurplus(
    for owner: [UInt8], _ more: Int, _ measure: (AttachmentPartFile) -> Int
  ) -> Bool {
    var shares: [[UInt8]: (size: Int, newest: Int, contents: Int)] = [:]
    for (name, row) in rows where measure(row.part) > 0 {
      let known = shares[Self.account(name.owner)] ?? (0, 0, 0)
      shares[Self.account(name.owner)] = (
        known.size + measure(row.part), max(known.newest, row.number), known.contents + 1
      )
    }
    let own = shares.removeValue(forKey: Self.account(owner))?.size ?? 0
    let most = shares.values.filter { $0.contents > 1 && $0.size > own + more }
      .max { ($0.size, $0.newest) < ($1.size, $1.newest) }
    guard let most, let newest = rows.first(where: { $0.value.number == most.newest }) else {
      return false
    }
    drop(newest.key)
    return true
  }

  /// Deletes an upload.
  private mutating func drop(_ name: UploadName) { rows.removeValue(forKey: name)?.part.cancel() }
}
