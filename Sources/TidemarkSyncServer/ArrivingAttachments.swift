internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The content that comes, or has come, for changes that a feed does not have yet: attachments, and
/// values that are too large to travel with their changes.
///
/// A content is filed under its hash, its length, the replica that sends it and the reach of that
/// one's authorization. Replicas and hashes are no secrets, so nobody who reaches other entries may
/// see by them what waits, or take it for an entry of its own.
package struct ArrivingAttachments: Sendable {
  typealias Name = AttachmentFiles.PartName

  private struct Row {
    var part: AttachmentPartFile
    /// The order in which uploads began.
    var number: Int
    /// The time at which bytes of the upload last arrived, and its length then.
    var progress: (time: UInt64, bytes: Int)
  }

  /// Bytes of a content that count as progress. One that comes more slowly than so many in
  /// ``SyncHandler/millisecondsUndisturbed`` only keeps room from others.
  private static let leastProgress = 256 << 10

  private var rows: [Name: Row] = [:]
  private var begun = 0
  /// Errors of content that an earlier opening has left and that cannot be read.
  private(set) var unreadable: [TidemarkError] = []

  package init() {}

  /// Finds the partial uploads that are on the disk.
  init(_ engine: Engine) throws(TidemarkError) {
    guard engine.configuration.access != .readOnly else { return }
    let parts = try engine.attachments.parts { unreadable.append($0) }
    // Contents that this store fetches itself come for nobody.
    for (name, part) in parts.sorted(by: { $0.part.touched < $1.part.touched })
    where name.owner.count == 2 * ReplicaID.byteCount {
      part.capTouched(at: engine.environment.clock.now().sinceEpoch)
      self[name] = part
    }
  }

  /// The owner of what a replica sends, and may name, with an authorization: 16 bytes of a hash of
  /// what it reaches, none for everything, and the replica.
  static func owner(_ replica: ReplicaID, _ access: SyncAccess) -> [UInt8] {
    guard let scope = access.scope, !PlantedSyncBug.isOn(.waitingContentShared) else {
      return ReplicaID.none.bytes + replica.bytes
    }
    return SHA256.hash(scope.canonicalBytes.rawSpan).prefix(ReplicaID.byteCount) + replica.bytes
  }

  /// The owners that share room with one: those of the same reach, since a token can be used under
  /// ever new replicas. Where it reaches everything, replicas are all that tells callers apart.
  private static func account(_ owner: [UInt8]) -> [UInt8] {
    let reach = Array(owner.prefix(ReplicaID.byteCount))
    return reach == ReplicaID.none.bytes ? owner : reach
  }

  /// How many there are.
  var count: Int { rows.count }

  /// The same of those that nobody has gone on with since, in bytes on the disk.
  func bytes(untouchedSince time: UInt64) -> Int {
    total { $0.touched < time ? $0.storedBytes : 0 }
  }

  /// The sum of something over all contents.
  func total(_ measure: (AttachmentPartFile) -> Int) -> Int {
    rows.values.reduce(0) { $0 + measure($1.part) }
  }

  subscript(name: Name) -> AttachmentPartFile? {
    get { rows[name].flatMap { $0.part.isOver ? nil : $0.part } }
    set {
      guard let newValue else { return rows[name] = nil }
      guard rows[name]?.part !== newValue else { return }
      begun += 1
      rows[name] = Row(
        part: newValue, number: begun, progress: (newValue.touched, newValue.storedBytes))
    }
  }

  /// Takes note of what has come of a content.
  mutating func notePart(of name: Name, at now: UInt64) {
    guard let row = rows[name] else { return }
    let more = row.part.storedBytes - row.progress.bytes
    guard more >= Self.leastProgress || (more > 0 && row.part.mayBeWhole) else { return }
    rows[name]?.progress = (now, row.progress.bytes + more)
  }

  // MARK: Making room

  /// Gives up contents that nobody has gone on with since.
  mutating func dropUntouched(since time: UInt64, but name: Name?) {
    let old = rows.filter { $1.part.touched < time && $0 != name }
    for (name, _) in old.sorted(by: { $0.value.number < $1.value.number }) { drop(name) }
  }

  /// Gives up the content that has made no progress for longest.
  /// - Parameters:
  ///   - time: one that has made some since then stays.
  ///   - name: stays, too.
  ///   - measure: what is to become less.
  /// - Returns: false when there is none.
  mutating func dropSlow(
    since time: UInt64, but name: Name, _ measure: (AttachmentPartFile) -> Int
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
  mutating func dropSurplus(
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
  private mutating func drop(_ name: Name) { rows.removeValue(forKey: name)?.part.cancel() }

  /// Forgets a part file that is over, unless another one has begun under its name.
  mutating func forget(_ part: AttachmentPartFile, of owner: [UInt8]) {
    let name = Name(id: part.id, owner: owner)
    if rows[name]?.part === part { rows[name] = nil }
  }
}
