public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// How much of an attachment's content ``Replicator/fetchAttachment(forKey:progress:)`` has
/// fetched.
public struct AttachmentProgress: Sendable, Hashable {
  /// How many bytes of the content this store has so far.
  public var received: Int
  /// The length of the whole content in bytes.
  public var length: Int

  /// Creates a progress value, for tests and previews.
  /// - Parameters:
  ///   - received: how many bytes this store has.
  ///   - length: the length of the whole content in bytes.
  public init(received: Int, length: Int) {
    self.received = received
    self.length = length
  }
}

extension Replicator {
  /// Fetches the content of the attachment of a key's entry, unless this store has it.
  ///
  /// ```swift
  /// let film = try await replicator.fetchAttachment(forKey: "film/7") { progress in
  ///   show(progress.received, of: progress.length)
  /// }
  /// ```
  /// It is fetched in parts, with one in memory at a time, and valid once it has the hash in the
  /// entry. Parts are kept when the call fails, is cancelled, or the process ends, and the next
  /// call resumes. The replicator need not run, and its budget does not apply, since the program
  /// asks for the content.
  /// - Parameters:
  ///   - key: the key; the peer must have the same attachment under it, so replicate first.
  ///   - progress: called before every part and at the end, on any thread.
  /// - Returns: a reader of the content; nil if there is no such key, or its entry has no
  ///   attachment.
  /// - Throws: `peerFailed` when the peer fails, or does not have the content; `cancelled`;
  ///   `noSpace` and other errors of this store.
  @discardableResult
  public func fetchAttachment(
    forKey key: some BytesConvertible & Sendable,
    progress: (@Sendable (AttachmentProgress) -> Void)? = nil
  ) async throws(TidemarkError) -> AttachmentReader? {
    guard let reference = try store.entry(forKey: key)?.attachment else { return nil }
    if let here = try store.attachment(reference) { return here }
    let key = Key(key).bytes
    try await TidemarkError.asSyncError { try await fetch(reference, key, progress) }
    return try store.attachment(reference)
  }

  private func fetch(
    _ reference: AttachmentReference, _ key: [UInt8],
    _ progress: (@Sendable (AttachmentProgress) -> Void)?
  ) async throws {
    let engine = store.engine
    let part = try await host.perform { try $0.log.contentPart(of: reference.engineID) }
    guard let part else { return }
    let replica = ReplicaID(engine.reader.replicaID) ?? .none
    var received = part.received
    while received < reference.length {
      try Task.checkCancellation()
      progress?(AttachmentProgress(received: received, length: reference.length))
      let offset = received
      let answer = try await peer.fetch(
        ContentRequest(
          replica: replica, key: key, attachment: reference, offset: offset,
          limit: AttachRequest.mostBytes))
      do throws(FormatError) { try WireMessage.fetchAnswer(answer).check() } catch {
        throw PeerError(error)
      }
      guard let bytes = answer.bytes else {
        throw PeerError(
          .failed, "the peer has another entry at the key, or does not have the content")
      }
      received = try await host.perform { _ in
        try part.append(bytes, at: offset, now: engine.environment.clock.now().sinceEpoch)
      }
      guard received > offset else {
        throw PeerError(.malformed, "the peer sent an empty part of the content")
      }
    }
    try await host.perform { _ in
      do throws(TidemarkError) { _ = try part.finish() } catch {
        // Another call may have fetched the same content meanwhile.
        guard try engine.holdContent(of: part.id) != nil else { throw error }
      }
    }
    progress?(AttachmentProgress(received: reference.length, length: reference.length))
  }
}
