internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Takes a part of a large value, ahead of the change that has it.
  ///
  /// Bytes received are durable and stay until their change is pushed by the same replica, or until
  /// others need the room. A part that does not continue what is there changes nothing; the answer
  /// says from where on to go on.
  /// - Returns: the answer, and where what it tells of stands.
  /// - Throws: ``PeerError``: `malformed` for what makes no sense, `forbidden`, `unavailable`.
  func stageUpload(
    _ request: UploadRequest, _ access: SyncAccess
  ) throws -> (UploadAnswer, Position) {
    guard access.canPush else {
      throw PeerError(.forbidden, "the authorization does not allow to write")
    }
    // It need not have come over a wire.
    try WireMessage.uploadRequest(request).check()
    let name = UploadTable.Name(replica: request.replica, blob: request.blob)
    return try feed.uploads.withLock { (uploads: inout UploadTable) throws(any Error) in
      let received = uploads[name]?.received ?? 0
      let known = received - request.offset
      let part = UploadPart(upload: name, offset: received, length: request.bytes.count - known)
      // A shorter one would be a record for a few bytes; the caller goes on from what is there.
      let isLongEnough =
        part.length >= UploadRequest.leastBytes || received + part.length == request.blob.length
      guard known >= 0, part.length > 0, isLongEnough else {
        // It is what was received before that must be on the disk.
        return (UploadAnswer(received: received), try feed.range().headPosition)
      }
      try makeRoom(for: part, &uploads)
      let place = try feed.append(.feedUpload, key: part.key, value: Array(request.bytes[known...]))
      uploads.add(part, at: feed.now)
      return (UploadAnswer(received: received + part.length), place)
    }
  }

  private func makeRoom(for part: UploadPart, _ uploads: inout UploadTable) throws {
    try dropOldUploads(&uploads, but: part.upload)
    var missing = uploads.bytes + part.length - options.uploadBytes
    guard missing > 0 else { return }
    var going: [UploadTable.Upload] = []
    let idle = feed.time(before: Self.millisecondsUndisturbed)
    for upload in uploads.untouched(since: idle, but: part.upload) where missing > 0 {
      going.append(upload)
      missing -= upload.received
    }
    try feed.remove(.feedUpload, of: going, keys: \.keys) { uploads.remove($0) }
    guard missing <= 0 else {
      throw PeerError(.busy, "too many large values are on their way", retryAfter: .seconds(10))
    }
  }

  /// An upload that goes on is left alone: a newcomer that took its room would lose it in turn. One
  /// that nobody has gone on with for so long goes. So it is with attachments.
  static let millisecondsUndisturbed: UInt64 = 60_000
  static let millisecondsKept: UInt64 = 7 * 86_400_000

  /// Takes away what nobody has gone on with for so long.
  func dropOldUploads(
    _ uploads: inout UploadTable, but name: UploadTable.Name? = nil
  ) throws(TidemarkError) {
    try feed.remove(.feedUpload, keys: uploads.strays)
    uploads.strays = []
    let old = uploads.untouched(since: feed.time(before: Self.millisecondsKept), but: name)
    try feed.remove(.feedUpload, of: old, keys: \.keys) { uploads.remove($0) }
  }

  /// Puts the large values of a batch in their places, as far as they are there. That takes long,
  /// and is done before anything is locked.
  /// - Returns: what need not be kept once the batch is in the feed.
  /// - Throws: ``PeerError`` of kind `malformed` when one is another than its name says: it has to
  ///   be uploaded again.
  func takeUploads(into request: inout PushRequest) throws -> [UploadTable.Upload] {
    var found: [UploadTable.Name: UploadTable.Upload] = [:]
    for index in request.changes.indices {
      guard let blob = request.changes[index].content.blob else { continue }
      let name = UploadTable.Name(replica: request.replica, blob: blob)
      guard let upload = feed.uploads.withLock({ $0[name] }), upload.received == blob.length else {
        continue
      }
      var value: [UInt8] = []
      value.reserveCapacity(blob.length)
      for key in upload.keys { value += try feed.record(.feedUpload, key: key)?.value ?? [] }
      // Somebody else may have let it go meanwhile.
      guard value.count == blob.length else { continue }
      guard BlobID(of: value) == blob else {
        try feed.uploads.withLock { (uploads: inout UploadTable) throws(TidemarkError) in
          try feed.remove(.feedUpload, keys: upload.keys)
          uploads.remove(upload)
        }
        throw PeerError(.malformed, "a large value is not what its name says")
      }
      request.changes[index].content.value = value
      request.changes[index].content.blob = nil
      found[name] = upload
    }
    return Array(found.values)
  }

  /// Makes sure that what was put in its place before is what is there still.
  /// - Throws: ``PeerError`` of kind `busy` when a value has not come, or not whole.
  func checkUploads(of request: PushRequest, _ uploads: [UploadTable.Upload]) throws(PeerError) {
    let isThere = feed.uploads.withLock { known in
      uploads.allSatisfy { known[$0.name]?.keys == $0.keys }
    }
    guard isThere, !request.changes.contains(where: { $0.content.blob != nil }) else {
      throw PeerError(.busy, "a large value has not been uploaded", retryAfter: .seconds(0))
    }
  }

  /// Answers with a part of a large value that stands in the feed.
  /// - Throws: ``PeerError``: `busy` when it is not kept any more, since something else took its
  ///   place: the page that has named it is to be pulled again.
  func stageDownload(_ request: DownloadRequest, _ access: SyncAccess) throws -> DownloadAnswer {
    let offset = request.position.offset
    guard try feed.range().contains(request.position),
      let head = try feed.heads(at: [offset])[offset], head.kind == .put,
      access.reaches(key: head.key, labels: head.labels)
    else { throw Self.noValue }
    // As it is unpacked, and a copy of it.
    return try LargeValues.shared.withRoom(for: 2 * head.valueLength) {
      guard let value = try feed.values(at: [offset])[offset] else {
        throw Self.noValue
      }
      let first = min(max(request.offset, 0), value.count)
      // Every call reads the value as a whole: those that want next to nothing get more.
      let wanted = max(request.limit, UploadRequest.leastBytes)
      let count = min(wanted, DownloadRequest.mostBytes, value.count - first)
      return DownloadAnswer(length: value.count, bytes: Array(value[first..<first + count]))
    }
  }

  private static let noValue = PeerError(
    .busy, "no large value stands there any more: pull again", retryAfter: .seconds(0))
}

/// The bytes of large values that calls hold at a time: a request of a few bytes may ask for 64
/// MiB.
final class LargeValues: Sendable {
  /// The budget of all handlers of the program.
  static let shared = LargeValues(most: 256 << 20)

  private let most: Int
  private let held = Lock(0)

  /// - Parameter most: in bytes; a single call may have more while there is no other.
  init(most: Int) { self.most = most }

  /// Runs a call that holds so many bytes.
  /// - Throws: ``PeerError`` of kind `busy` where others hold too much.
  func withRoom<R>(for bytes: Int, _ body: () throws -> R) throws -> R {
    guard bytes > 0 else { return try body() }
    let isThere = held.withLock { held in
      guard held == 0 || held + bytes <= most else { return false }
      held += bytes
      return true
    }
    guard isThere else {
      throw PeerError(.busy, "too many large values are being read", retryAfter: .seconds(1))
    }
    defer { held.withLock { $0 -= bytes } }
    return try body()
  }
}
