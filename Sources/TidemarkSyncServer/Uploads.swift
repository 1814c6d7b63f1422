internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The key of an upload: the hash and length of its content, and its owner.
package typealias UploadName = AttachmentFiles.PartName

/// The uploads of a feed, incomplete and complete: content of changes that are not pushed yet,
/// attachments and values too large for a push. Decides which are deleted to make room for others.
///
/// The key of an upload has its content's hash and length, the replica that sends it, and the scope
/// of that replica's authorization. Replica ids and hashes are not secret: a caller with another
/// scope must not find out what is uploaded, or use it for an entry of its own.
struct Uploads: Sendable {
  private struct Row {
    var part: AttachmentPartFile
    /// The order in which uploads began.
    var number: Int
    /// The time at which bytes of the upload last arrived, and its length then.
    var progress: (time: UInt64, bytes: Int)
  }

  /// Bytes that count as progress of an upload. One that gets fewer within
  /// ``StoreContents/millisecondsUndisturbed`` may be deleted, as it only takes room from others.
  private static let leastProgress = 256 << 10

  private var rows: [UploadName: Row] = [:]
  private var begun = 0

  /// Whose share an owner's uploads count to: the scope's, since a token can be used under ever new
  /// replica ids. Callers that reach everything have no other difference than the replica id.
  private static func account(_ owner: [UInt8]) -> [UInt8] {
    let reach = Array(owner.prefix(ReplicaID.byteCount))
    return reach == ReplicaID.none.bytes ? owner : reach
  }

  /// How many uploads there are.
  var count: Int { total { $0.isOver ? 0 : 1 } }

  /// The sum of a measure over all uploads.
  func total(_ measure: (AttachmentPartFile) -> Int) -> Int {
    rows.values.reduce(0) { $0 + measure($1.part) }
  }

  /// The upload of a key, unless it has ended: it was deleted, or has become an attachment.
  subscript(name: UploadName) -> AttachmentPartFile? {
    rows[name].flatMap { $0.part.isOver ? nil : $0.part }
  }

  mutating func insert(_ part: AttachmentPartFile, _ name: UploadName) {
    guard rows[name]?.part !== part else { return }
    rows = rows.filter { !$0.value.part.isOver }
    begun += 1
    rows[name] = Row(part: part, number: begun, progress: (part.touched, part.storedBytes))
  }

  /// Notes progress of an upload, if there is enough.
  mutating func notePart(of name: UploadName, at now: UInt64) {
    guard let row = rows[name] else { return }
    let more = row.part.storedBytes - row.progress.bytes
    guard more >= Self.leastProgress || (more > 0 && row.part.mayBeWhole) else { return }
    rows[name]?.progress = (now, row.progress.bytes + more)
  }

  // MARK: Making room

  /// Deletes other uploads until more bytes of one fit within the bounds.
  /// - Parameter idle: an upload with progress since this time is not deleted for being slow.
  mutating func makeRoom(
    for more: Int, of name: UploadName, within options: SyncHandler.Options, idleSince idle: UInt64
  ) throws(PeerError) {
    let isNew = self[name] == nil ? 1 : 0
    // Complete uploads wait for their batch, so their bound is what one batch may refer to.
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
          throw PeerError(.busy, "there are too many uploads now", retryAfter: .seconds(10))
        }
      }
    }
  }

  /// Deletes uploads that no call has touched since a time.
  mutating func dropUntouched(since time: UInt64, but name: UploadName? = nil) {
    let old = rows.filter { $1.part.touched < time && $0 != name }
    for (name, _) in old.sorted(by: { $0.value.number < $1.value.number }) { drop(name) }
  }

  /// Deletes the upload that was not touched for longest, of those without progress.
  /// - Parameters:
  ///   - time: an upload with progress since then stays.
  ///   - name: the upload that needs the room, which stays, too.
  ///   - measure: what is to become less; an upload without any of it stays.
  /// - Returns: false when there is none to delete.
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

  /// Deletes the newest upload of the account with the most, if that is more than the asking one
  /// would then have. The only upload of an account stays: it would be sent again, and evict
  /// another one in turn.
  /// - Parameters:
  ///   - owner: the owner of the upload that needs room.
  ///   - more: how much it needs.
  ///   - measure: the unit of that: bytes or uploads.
  /// - Returns: false when there is none to delete.
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
