internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Large values travel apart and in parts (``SyncContent/blob``): what a connection could not bring
/// over as a whole goes on where it was, also when the call that needs it has failed in between.
struct BlobTransfer: Sendable {
  /// Parts grow as long as one takes less than this.
  private static let quick: Duration = .seconds(2)
  /// Most bytes of a part that is sent; see ``SyncLimits``.
  private static let mostSent = 768 << 10

  /// How many bytes the next part has. It is halved when one fails, since it may have been too
  /// much for the time that a call may take.
  private var partBytes = SyncContent.mostInlineBytes
  /// The limit that parts do not grow beyond, after a larger one has failed, and how many have gone
  /// since: each failure costs a pause.
  private var ceiling: (bytes: Int, parts: Int)?
  private static let partsUntilNextTry = 16
  /// The beginning of the value that is being fetched, and of which entry: there is one in a page.
  private var fetched: (position: Position, bytes: [UInt8])?

  var sendBytes: Int { min(partBytes, Self.mostSent) }

  var fetchBytes: Int { min(partBytes, DownloadRequest.mostBytes) }

  /// - Returns: how much of the value of an entry is there already.
  mutating func begin(at position: Position) -> Int {
    if let fetched, fetched.position == position { return fetched.bytes.count }
    fetched = (position, [])
    return 0
  }

  /// Takes a part, if it continues what is there.
  /// - Returns: where to go on.
  mutating func add(_ part: [UInt8], at offset: Int, of position: Position) -> Int {
    if fetched?.position == position, fetched?.bytes.count == offset {
      fetched?.bytes.append(contentsOf: part)
    }
    return begin(at: position)
  }

  mutating func take(_ position: Position) -> [UInt8] {
    defer { fetched = nil }
    guard let fetched, fetched.position == position else { return [] }
    return fetched.bytes
  }

  /// Takes note of a part that came over. One that was smaller than parts are now, as the last of
  /// a value is, says nothing of larger ones.
  mutating func partWent(_ bytes: Int, in time: Duration) {
    guard bytes >= partBytes, time < Self.quick else { return }
    if let known = ceiling, partBytes >= known.bytes {
      let parts = known.parts + 1
      ceiling = parts < Self.partsUntilNextTry ? (known.bytes, parts) : nil
      if ceiling != nil { return }
    }
    partBytes = min(2 * partBytes, DownloadRequest.mostBytes)
  }

  /// Takes note of a part that did not come over.
  mutating func partFailed(_ bytes: Int) {
    partBytes = Self.whole(min(partBytes, bytes) / 2)
    ceiling = (partBytes, 0)
  }

  /// Whether a peer may take so little of a part, or give so little: it must not make work without
  /// end.
  static func isProgress(_ bytes: Int, ofRest rest: Int) -> Bool {
    bytes >= min(AttachRequest.partBytes, rest)
  }
}

extension HTTPPeer {
  // MARK: Sending

  /// The batch with names in the place of large values.
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

  /// Sends the large values of a batch.
  /// - Parameter named: the same with names in their place.
  func uploadBlobs(of request: PushRequest, named: PushRequest) async throws {
    for (change, name) in zip(request.changes, named.changes) {
      guard let blob = name.content.blob else { continue }
      try await upload(change, blob, for: request.replica)
    }
  }

  private func upload(
    _ change: PushedChange, _ blob: AttachmentReference, for replica: ReplicaID
  ) async throws {
    // The bytes that are there from an earlier try, whoever has made it.
    guard var offset = try await uploadPart(0..<0, of: change, blob, replica) else { return }
    while offset < blob.length {
      let part = offset..<min(offset + transfer.withLock { $0.pieceBytes }, blob.length)
      guard let received = try await uploadPart(part, of: change, blob, replica) else { return }
      guard BlobTransfer.isProgress(received - offset, ofRest: blob.length - offset) else {
        throw PeerError(.unavailable, "the server does not keep what is uploaded")
      }
      offset = received
    }
  }

  /// - Returns: nil where the server will never take it, as its verdict on the change will say.
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

  /// Puts large values in the place of their names.
  func fetchBlobs(
    of entries: inout [FeedEntry], for replica: ReplicaID
  ) async throws {
    // A page has one, since each is more than a page is meant to hold.
    let bytes = entries.reduce(0) { $0 + ($1.content.blob?.length ?? 0) }
    guard bytes <= options.largestMessage else {
      throw PeerError(.malformed, "large values have more bytes than messages may have here")
    }
    for index in entries.indices {
      guard let blob = entries[index].content.blob else { continue }
      let value = try await download(blob, at: entries[index].position, for: replica)
      entries[index].content.value = value
      entries[index].content.blob = nil
    }
  }

  private func download(
    _ blob: AttachmentReference, at position: Position, for replica: ReplicaID
  ) async throws -> [UInt8] {
    // Every part is kept at once: the call may be cancelled, and another one begin at any time.
    var offset = transfer.withLock { $0.begin(at: position) }
    while offset < blob.length {
      let limit = transfer.withLock { $0.fetchBytes }
      let request = DownloadRequest(
        replica: replica, position: position, offset: offset, limit: limit)
      let rest = blob.length - offset
      let answer = try await timed(min(limit, rest)) {
        try await call("download", .downloadRequest(request))
      }
      guard case .downloadAnswer(let part) = answer, part.length == blob.length,
        part.bytes.count <= rest, BlobTransfer.isProgress(part.bytes.count, ofRest: rest)
      else { throw Self.wrongAnswer }
      offset = transfer.withLock { $0.add(part.bytes, at: offset, of: position) }
    }
    let value = transfer.withLock { $0.take(position) }
    guard SyncContent.name(of: value) == blob else {
      throw PeerError(.malformed, "a large value is not what its name says")
    }
    return value
  }

  /// Makes a call that carries so many bytes of a value.
  func timed(
    _ bytes: Int, _ call: () async throws -> WireMessage
  ) async throws -> WireMessage {
    let start = ContinuousClock.now
    do {
      let answer = try await call()
      transfer.withLock { $0.partWent(bytes, in: .now - start) }
      return answer
    } catch {
      // That there is too much to do says nothing of the part.
      let isBusy = (error as? PeerError)?.kind == .busy
      if !isBusy, !(error is CancellationError) { transfer.withLock { $0.partFailed(bytes) } }
      throw error
    }
  }
}
