internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// Content in the files of a store.
final class StoreContents: FeedContents {
  /// An upload that goes on is left alone for so long: a newcomer that took its room would lose it
  /// in turn. One that makes no progress goes.
  static let millisecondsUndisturbed: UInt64 = 60_000
  private static let millisecondsKept: UInt64 = 7 * 86_400_000
  /// Room on the disk that content does not take.
  private static let bytesLeftFree = 64 << 20

  private let engine: Engine
  /// Not held while content is read or written.
  let uploads: Lock<Uploads>
  let unreadable: [TidemarkError]

  /// Finds the partial uploads that are on the disk.
  init(_ engine: Engine) throws(TidemarkError) {
    self.engine = engine
    var uploads = Uploads()
    var unreadable: [TidemarkError] = []
    if engine.configuration.access != .readOnly {
      let parts = try engine.attachments.parts { unreadable.append($0) }
      // Contents that this store fetches itself come for nobody.
      for (name, part) in parts.sorted(by: { $0.part.touched < $1.part.touched })
      where name.owner.count == 2 * ReplicaID.byteCount {
        part.capTouched(at: engine.environment.clock.now().sinceEpoch)
        uploads.insert(part, name)
      }
    }
    self.uploads = Lock(uploads)
    self.unreadable = unreadable
  }

  private var now: UInt64 { engine.environment.clock.now().sinceEpoch }

  private func time(before milliseconds: UInt64) -> UInt64 { now - min(now, milliseconds) }

  // MARK: Content of the store

  func hold(_ id: AttachmentID) throws(TidemarkError) -> (any Sendable)? {
    guard let hold = try engine.holdContent(of: id) else { return nil }
    return hold
  }

  func read(_ id: AttachmentID, from offset: Int, count: Int) throws -> [UInt8]? {
    guard let reader = try engine.openAttachment(id) else { return nil }
    defer { reader.close() }
    let count = max(0, min(count, reader.length - offset))
    var part: [UInt8] = []
    part.reserveCapacity(count)
    while part.count < count {
      part += try reader.read(at: offset + part.count, count: count - part.count)
    }
    return part
  }

  // MARK: Uploads

  private static let isBeingRead = PeerError(
    .busy, "what has come of a content is being read again", retryAfter: .seconds(0))

  func take(
    _ bytes: [UInt8], at offset: Int, of name: UploadName, within options: SyncHandler.Options
  ) throws -> Int {
    var part = uploads.withLock { $0[name] }
    if !bytes.isEmpty || (name.id.length == 0 && part == nil) {
      let idle = time(before: Self.millisecondsUndisturbed)
      let old = time(before: Self.millisecondsKept)
      try uploads.withLock { (uploads) throws(PeerError) in
        uploads.dropUntouched(since: old, but: name)
        try uploads.makeRoom(for: bytes.count, of: name, within: options, idleSince: idle)
      }
      try checkDisk(for: Int(name.id.length) - offset)
      part = try engine.attachmentPart(of: name.id, for: name.owner, begins: true)
      if let part { uploads.withLock { $0.insert(part, name) } }
    }
    guard let part else { return 0 }
    do throws(TidemarkError) {
      if try part.verifyStored(most: SyncHandler.bytesPerLook) {
        let now = now
        let received = try part.append(bytes, at: offset, now: now)
        uploads.withLock { $0.notePart(of: name, at: now) }
        return received
      }
    } catch {
      switch error.code {
      case .damaged: throw PeerError(.malformed, "a content is not what its hash says")
      case .closed where part.isOver:
        throw PeerError(.busy, "the content has come, or has made room", retryAfter: .seconds(0))
      default: throw error
      }
    }
    throw Self.isBeingRead
  }

  private func checkDisk(for rest: Int) throws(PeerError) {
    let free = engine.attachments.freeBytes
    guard let free, free < rest + Self.bytesLeftFree else { return }
    throw PeerError(
      .busy, "the disk has no room for \(rest) more bytes of a content", retryAfter: .seconds(60))
  }

  func whole(_ name: UploadName, reading most: inout Int) throws -> (any FeedUpload)? {
    guard let part = uploads.withLock({ $0[name] }) else { return nil }
    do throws(TidemarkError) {
      let before = part.received
      if try part.verifyStored(most: most) {
        most -= part.received - before
        return part.isWhole ? part : nil
      }
    } catch {
      // It is sent again.
      guard [.damaged, .closed].contains(error.code) else { throw error }
      return nil
    }
    throw Self.isBeingRead
  }

  // MARK: Upkeep

  /// Bytes of what nobody has gone on with for so long that it goes.
  var oldBytes: Int {
    let time = time(before: Self.millisecondsKept)
    return uploads.withLock { $0.total { $0.touched < time ? $0.storedBytes : 0 } }
  }

  func dropOld() {
    uploads.withLock { $0.dropUntouched(since: time(before: Self.millisecondsKept)) }
  }
}

extension AttachmentPartFile: FeedUpload {
  package func adopt() throws(TidemarkError) -> any Sendable { try finish() }
  package func drop() { cancel() }
}
