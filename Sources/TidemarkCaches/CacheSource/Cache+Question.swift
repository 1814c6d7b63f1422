internal import TidemarkEngine

extension Cache {
  /// Begins a question, for those who ask a source in a way of their own. The question is open
  /// until it is let go.
  /// - Parameter key: the key, without the cache's prefix.
  package func ask(about key: some BytesConvertible) -> CacheQuestion {
    CacheQuestion(full(key), store.registry.questions)
  }

  /// Keeps the answer to a question, of whichever key, unless something was said since.
  /// - Parameter isWanted: whether it is wanted besides, asked while nobody else writes to a cache.
  /// - Returns: false where something was said, or it is not wanted; then nothing is written.
  /// - Throws: as ``put(_:_:labels:hash:maxAge:attachment:durability:)``.
  package func put(
    _ key: some BytesConvertible, _ value: Value, labels: [EntryLabel] = [], hash: [UInt8]? = nil,
    maxAge: Duration? = nil, attachment: StagedAttachment? = nil, answering question: CacheQuestion,
    if isWanted: @escaping @Sendable () throws(TidemarkError) -> Bool = { true }
  ) async throws(TidemarkError) -> Bool {
    let batch = try batch(key, encode(value), labels, hash, maxAge, attachment)
    defer { extendLifetime(attachment) }
    do {
      _ = try await store.commit(
        batch, nil,
        answering: CacheQuestion.Answer(
          question: question, labels: labels, mustBeLast: false, isWanted: isWanted))
      return true
    } catch {
      guard error.code == .conflict else { throw error }
      if question.isCurrent(labels: labels), try isWanted() { throw error }
      return false
    }
  }

  /// The sequence of a key's newest entry; 0 where there is none.
  package func sequence(of key: Key) throws(TidemarkError) -> UInt64 {
    let slot = try region.engine.reader.slot(ofKey: full(key).rawSpan)
    return slot.flatMap { $0.isDeleted ? nil : $0.sequence } ?? 0
  }
}
