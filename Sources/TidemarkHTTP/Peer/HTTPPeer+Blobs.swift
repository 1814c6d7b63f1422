internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Sizes the parts in which attachments and large values (``SyncContent/blob``) are transferred,
/// and keeps the value that is being downloaded, so that a later call resumes after a failure.
struct BlobTransfer: Sendable {
  /// Parts grow as long as one takes less than this.
  private static let quick: Duration = .seconds(2)
  /// Most bytes of a part that is uploaded; see ``SyncLimits``.
  private static let mostSent = 768 << 10

  /// How many bytes the next part has. It is halved when a part fails, as that may have been too
  /// large for a call's timeout.
  private var partBytes = SyncContent.mostInlineBytes
  /// By which part of its size the next part is larger: slowly once one has failed, as each failure
  /// costs a pause.
  private var growth = 1
  /// The bytes that are downloaded so far of one entry's value. A page has at most one large value.
  private var fetched: (position: FeedPosition, bytes: [UInt8])?

  /// Most bytes of the next part that is uploaded, a multiple of ``AttachRequest/partBytes``.
  var uploadBytes: Int { Self.wholeParts(min(partBytes, Self.mostSent)) }
  /// Most bytes of the next part that is fetched, also such a multiple.
  var fetchBytes: Int { Self.wholeParts(partBytes) }

  private static func wholeParts(_ bytes: Int) -> Int {
    max(AttachRequest.partBytes, bytes / AttachRequest.partBytes * AttachRequest.partBytes)
  }

  /// - Returns: how many bytes of the entry's value are downloaded already.
  mutating func begin(at position: FeedPosition) -> Int {
    if let fetched, fetched.position == position { return fetched.bytes.count }
    fetched = (position, [])
    return 0
  }

  /// Appends a part, if it continues the bytes that are kept.
  /// - Returns: the offset of the next part.
  mutating func add(_ part: [UInt8], at offset: Int, of position: FeedPosition) -> Int {
    if fetched?.position == position, fetched?.bytes.count == offset {
      fetched?.bytes.append(contentsOf: part)
    }
    return begin(at: position)
  }

  mutating func take(_ position: FeedPosition) -> [UInt8] {
    defer { fetched = nil }
    guard let fetched, fetched.position == position else { return [] }
    return fetched.bytes
  }

  /// Notes a part that was transferred. One that was smaller than parts are now, such as the last
  /// of a value, says nothing of larger ones.
  mutating func partWent(_ bytes: Int, in time: Duration) {
    guard bytes >= Self.wholeParts(partBytes), time < Self.quick else { return }
    partBytes = min(partBytes + partBytes / growth, AttachRequest.mostBytes)
  }

  /// Notes a part that failed.
  mutating func partFailed(_ bytes: Int) {
    partBytes = Self.wholeParts(min(partBytes, bytes) / 2)
    growth = 24
  }

  /// Whether a part has enough bytes: a peer must not prolong a transfer for ever with tiny ones.
  static func isProgress(_ bytes: Int, ofRest rest: Int) -> Bool {
    bytes >= min(AttachRequest.partBytes, rest)
  }
}

extension HTTPPeer {
  // MARK: Sending

  /// The batch with references (hash and length) in place of large values.
  func withoutBlobs(_ request: PushRequest) -> PushRequest {
    guard request.changes.contains(where: { $0.content.value.count > SyncContent.mostInlineBytes })
    else {
      return request
    }
    var request = request
    for index in request.changes.indices {
      request.changes[index].content = request.changes[index].content.movedApart
    }
    return request
  }

  /// Uploads the large values of a batch, before its push.
  /// - Parameter named: the batch with references in place of large values.
  func uploadBlobs(of request: PushRequest, named: PushRequest) async throws {
    for (change, name) in zip(request.changes, named.changes) {
      guard let blob = name.content.blob else { continue }
      try await upload(change, blob, for: request.replica)
    }
  }

  private func upload(
    _ change: PushedChange, _ blob: AttachmentReference, for replica: ReplicaID
  ) async throws {
    // An empty part asks how many bytes the server has from an earlier try.
    guard var offset = try await uploadPart(0..<0, of: change, blob, replica) else { return }
    while offset < blob.length {
      let part = offset..<min(offset + transfer.withLock { $0.uploadBytes }, blob.length)
      guard let received = try await uploadPart(part, of: change, blob, replica) else { return }
      guard BlobTransfer.isProgress(received - offset, ofRest: blob.length - offset) else {
        throw PeerError(.unavailable, "the server does not keep what is uploaded")
      }
      offset = received
    }
  }

  /// - Returns: how many bytes the server has; nil where it will reject the change, with a verdict.
  private func uploadPart(
    _ part: Range<Int>, of change: PushedChange, _ blob: AttachmentReference, _ replica: ReplicaID
  ) async throws -> Int? {
    let answer = try await attach(
      AttachRequest(
        replica: replica, key: change.key, attachment: blob, offset: part.lowerBound,
        bytes: Array(change.content.value[part])))
    return answer.rejection == nil ? answer.received : nil
  }

  // MARK: Fetching

  /// Downloads the large values of entries, in place of the references to them.
  func fetchBlobs(
    of entries: inout [FeedEntry], for replica: ReplicaID
  ) async throws {
    // A page usually has at most one, since each is larger than a page's limit.
    let bytes = entries.reduce(0) { $0 + ($1.content.blob?.length ?? 0) }
    guard bytes <= options.largestMessage else {
      throw PeerError(.malformed, "large values have more bytes than messages may have here")
    }
    for index in entries.indices {
      guard let blob = entries[index].content.blob else { continue }
      let value = try await download(blob, of: entries[index], for: replica)
      entries[index].content.value = value
      entries[index].content.blob = nil
    }
  }

  private func download(
    _ blob: AttachmentReference, of entry: FeedEntry, for replica: ReplicaID
  ) async throws -> [UInt8] {
    let position = entry.position
    // Each part is kept in `transfer`, so that a later call resumes if this one is cancelled.
    var offset = transfer.withLock { $0.begin(at: position) }
    while offset < blob.length {
      let rest = blob.length - offset
      let answer = try await fetch(
        ContentRequest(
          replica: replica, key: entry.key, attachment: blob, offset: offset,
          limit: AttachRequest.mostBytes, position: position))
      guard let part = answer.bytes, part.count <= rest,
        BlobTransfer.isProgress(part.count, ofRest: rest)
      else { throw Self.wrongAnswer }
      offset = transfer.withLock { $0.add(part, at: offset, of: position) }
    }
    let value = transfer.withLock { $0.take(position) }
    guard SyncContent.name(of: value) == blob else {
      throw PeerError(.malformed, "a large value is not what its name says")
    }
    return value
  }

  /// Makes a call that transfers `bytes` bytes of a content, and adapts the size of parts.
  func timed(
    _ bytes: Int, _ call: () async throws -> WireMessage
  ) async throws -> WireMessage {
    let start = ContinuousClock.now
    do {
      let answer = try await call()
      transfer.withLock { $0.partWent(bytes, in: .now - start) }
      return answer
    } catch {
      // A busy server says nothing about the part's size.
      let isBusy = (error as? PeerError)?.kind == .busy
      if !isBusy, !(error is CancellationError) { transfer.withLock { $0.partFailed(bytes) } }
      throw error
    }
  }
}
