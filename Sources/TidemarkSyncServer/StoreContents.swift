internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The attachments of a feed, and uploads whose changes are not pushed yet, in a store's files.
final class StoreContents: FeedContents {
  /// An upload with progress within this time is not deleted to make room for another: two uploads
  /// would otherwise evict each other in turn.
  static let millisecondsUndisturbed: UInt64 = 60_000
  private static let millisecondsKept: UInt64 = 7 * 86_400_000
  /// Free bytes on the disk that uploads leave to the log.
  private static let bytesLeftFree = 64 << 20

  private let engine: Engine
  /// The lock is not held while content is read or written.
  let uploads: Lock<Uploads>
  let unreadable: [TidemarkError]

  /// Finds the uploads on the disk from before a restart, the oldest first.
  init(_ engine: Engine) throws(TidemarkError) {
    self.engine = engine
    var uploads = Uploads()
    var unreadable: [TidemarkError] = []
    if engine.configuration.access != .readOnly {
      let parts = try engine.attachments.parts { unreadable.append($0) }
      // The store's own downloads have owners of another length.
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
    .busy, "the upload is being read again after a restart", retryAfter: .seconds(0))

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
      case .damaged: throw PeerError(.malformed, "the uploaded content does not have its hash")
      case .closed where part.isOver:
        throw PeerError(.busy, "the upload has just ended: ask again", retryAfter: .seconds(0))
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
      // The upload counts as missing, so its replica sends it again.
      guard [.damaged, .closed].contains(error.code) else { throw error }
      return nil
    }
    throw Self.isBeingRead
  }

  // MARK: Upkeep

  /// Bytes of uploads that were abandoned so long ago that `dropOld` deletes them.
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
