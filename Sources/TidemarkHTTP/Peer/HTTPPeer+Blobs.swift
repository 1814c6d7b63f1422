internal import TidemarkEngine
internal import TidemarkSync

/// Large values travel apart and in parts (``BlobID``): what a connection could not bring over as
/// a whole goes on where it was, also when the call that needs it has failed in between.
struct BlobTransfer: Sendable {
  /// Parts grow as long as one takes less than this.
  private static let quick: Duration = .seconds(2)
  /// Most bytes of a part that is sent; see ``SyncLimits``.
  private static let mostSent = 768 << 10

  /// How many bytes the next part has. It is halved when one fails, since it may have been too
  /// much for the time that a call may take.
  private var partBytes = BlobID.leastLength
  /// The beginning of the value that is being fetched, and of which entry: there is one in a page.
  var fetched: (position: Position, bytes: [UInt8])?

  func sendBytes(of blob: BlobID, from offset: Int) -> Int {
    min(partBytes, Self.mostSent, blob.length - offset)
  }

  var fetchBytes: Int { min(partBytes, DownloadRequest.mostBytes) }

  mutating func partWent(in time: Duration) {
    if time < Self.quick { partBytes = min(2 * partBytes, DownloadRequest.mostBytes) }
  }

  mutating func partFailed() { partBytes = max(partBytes / 2, UploadRequest.leastBytes) }
}

extension HTTPPeer {
  // MARK: Sending

  /// The batch with names in the place of large values.
  func withoutBlobs(_ request: PushRequest) -> PushRequest {
    guard request.changes.contains(where: { $0.content.value.count > BlobID.leastLength }) else {
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
      try await upload(change.content.value, blob, for: request.replica)
    }
  }

  private func upload(_ value: [UInt8], _ blob: BlobID, for replica: ReplicaID) async throws {
    // What is there from an earlier try, whoever has made it.
    var offset = try await uploadPart(of: [], blob, at: 0, replica)
    while offset < blob.length {
      let count = transfer.withLock { $0.sendBytes(of: blob, from: offset) }
      let part = Array(value[offset..<offset + count])
      let received = try await uploadPart(of: part, blob, at: offset, replica)
      guard received > offset else {
        throw PeerError(.unavailable, "the server does not keep what is uploaded")
      }
      offset = received
    }
  }

  private func uploadPart(
    of bytes: [UInt8], _ blob: BlobID, at offset: Int, _ replica: ReplicaID
  ) async throws -> Int {
    let request = UploadRequest(replica: replica, blob: blob, offset: offset, bytes: bytes)
    let answer = try await timed { try await call("upload", .uploadRequest(request)) }
    guard case .uploadAnswer(let answer) = answer, answer.received <= blob.length else {
      throw Self.wrongAnswer
    }
    return answer.received
  }

  // MARK: Fetching

  /// Puts large values in the place of their names.
  func fetchBlobs(
    of entries: inout [FeedEntry], for replica: ReplicaID
  ) async throws {
    for index in entries.indices {
      guard let blob = entries[index].content.blob else { continue }
      guard blob.length <= options.largestMessage else {
        throw PeerError(.malformed, "a value is longer than messages may be here")
      }
      let value = try await download(blob, at: entries[index].position, for: replica)
      entries[index].content.value = value
      entries[index].content.blob = nil
    }
  }

  private func download(
    _ blob: BlobID, at position: Position, for replica: ReplicaID
  ) async throws -> [UInt8] {
    var value = transfer.withLock { transfer in
      defer { transfer.fetched = nil }
      guard let known = transfer.fetched, known.position == position else { return [UInt8]() }
      return known.bytes
    }
    do {
      while value.count < blob.length {
        let request = DownloadRequest(
          replica: replica, position: position, offset: value.count,
          limit: transfer.withLock { $0.fetchBytes })
        let answer = try await timed { try await call("download", .downloadRequest(request)) }
        guard case .downloadAnswer(let part) = answer, part.length == blob.length,
          !part.bytes.isEmpty, part.bytes.count <= blob.length - value.count
        else { throw Self.wrongAnswer }
        value += part.bytes
      }
    } catch {
      let kept = value
      transfer.withLock { $0.fetched = (position, kept) }
      throw error
    }
    guard BlobID(of: value) == blob else {
      throw PeerError(.malformed, "a large value is not what its name says")
    }
    return value
  }

  private func timed(_ call: () async throws -> WireMessage) async throws -> WireMessage {
    let start = ContinuousClock.now
    do {
      let answer = try await call()
      transfer.withLock { $0.partWent(in: .now - start) }
      return answer
    } catch {
      transfer.withLock { $0.partFailed() }
      throw error
    }
  }
}
