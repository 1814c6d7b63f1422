internal import TidemarkEngine

/// The question to a source, and what becomes of its answer.
extension Cache {
  /// The question to the source.
  ///
  /// One for which nobody waits holds no store open: it is called off when its store goes.
  /// - Parameter policy: that of the reader who asks first.
  func question(
    _ key: Key, _ policy: ReadPolicy, _ source: CacheSource<Value>
  ) -> Flights.Ask {
    { [weak store, region, coding] question in
      let current = { store.map { Cache(store: $0, region: region, coding: coding) } }
      guard let known = try Self.known(key, policy, source, current()) else { return .overtaken }
      let answer: FetchedValue<Value>
      do {
        let request = SourceRequest(key: key, hash: known.hash)
        answer = try await source.retry.answer(
          within: source.timeout, timer: source.timer, sleep: source.sleep
        ) { try await source.fetch(request) }
      } catch {
        if Task.isCancelled { throw CancellationError() }
        throw SourceFailure(error: error)
      }
      // One that was called off meanwhile leaves no trace.
      guard let cache = current(), region.flights.isUnderWay(question)
      else { throw CancellationError() }
      return try await cache.keep(answer, of: key, question, upon: known.sequence)
    }
  }

  /// The version of a key that a source is asked about.
  /// - Returns: nil where it need not be asked any more: another question may have been answered
  ///   between the reader's look and this one.
  private static func known(
    _ key: Key, _ policy: ReadPolicy, _ source: CacheSource<Value>, _ cache: Cache?
  ) throws -> (sequence: UInt64, hash: [UInt8]?)? {
    guard let cache else { throw CancellationError() }
    guard try cache.look(key, policy, source, counts: false).next != .done else { return nil }
    let before = try cache.store.entry(forKey: cache.full(key))
    cache.region.count { $0.fetches += 1 }
    return (before?.sequence ?? 0, before?.hash)
  }

  /// Keeps an answer, unless something was said since it was asked for, or a later question was
  /// answered: then its readers are given what was written since, or else the answer.
  /// - Parameter sequence: the key's entry when the source was asked.
  private func keep(
    _ answer: FetchedValue<Value>, of key: Key, _ question: CacheQuestion, upon sequence: UInt64
  ) async throws -> Flights.Answer {
    var answered: Flights.Answered?
    var check = CacheQuestion.Answer(question: question)
    do {
      switch answer {
      case .value(let value, let hash, let labels, let maxAge, let attachment):
        let new = Flights.Answered(
          bytes: try encode(value), labels: try labels ?? entry(of: key)?.labels ?? [], hash: hash,
          maxAge: maxAge, attachment: attachment)
        answered = new
        check.labels = new.labels
        let batch = try batch(key, new.bytes, new.labels, hash, maxAge, attachment)
        _ = try await store.commit(batch, nil, answering: check)
        noteAbsence(question, .zero)
        return .value(new)
      case .notModified(let hash, let maxAge):
        guard let batch = try touchBatch(key, at: sequence, hash, maxAge),
          try await !store.commit(batch, nil, answering: check).sequences.isEmpty
        else {
          throw TidemarkError(
            .conflict, "nothing has changed at the source, and the value is another one by now")
        }
        let entry = try entry(of: key)
        region.count {
          $0.bytesSaved += (entry?.valueLength ?? 0) + (entry?.attachment?.length ?? 0)
        }
        return .value(nil)
      case .absent(let maxAge):
        // A cached entry that was written since the source was asked is an earlier question's.
        _ = try await store.commit(removal(of: key), nil, answering: check)
        noteAbsence(question, maxAge)
        return .gone
      }
    } catch let error as TidemarkError where error.code == .conflict {
      // A mark alone makes nothing newer than an answer.
      if let entry = try store.entry(forKey: full(key)), entry.sequence != sequence,
        entry.maxAgeSeconds != Validity.staleMark
      {
        return .value(nil)
      }
      if let answered, !question.isLast || !question.isCurrent(labels: answered.labels) {
        return .unkept(answered)
      }
      if case .absent = answer { return .gone }
      // The user's own value, or delete, stays; and what is right has been given up.
      throw SourceFailure(error: error)
    } catch let error as TidemarkError where [.invalidArgument, .coding].contains(error.code) {
      // An answer that no cache can keep is the source's fault.
      throw SourceFailure(error: error)
    }
  }

  /// The facts about a key's entry, without the value.
  private func entry(of key: Key) throws(TidemarkError) -> Entry? {
    try store.entry(forKey: full(key), values: false, walks: false)
  }

  private func noteAbsence(_ question: CacheQuestion, _ maxAge: Duration) {
    let now = region.now.milliseconds
    let end = now.addingClamped(Int64(clamping: maxAge.wholeMilliseconds))
    region.flights.noteAbsence(question, until: end, now: now)
  }
}

/// An error of a source, apart from those of the store.
struct SourceFailure: Error {
  var error: any Error
}
