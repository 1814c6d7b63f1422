internal import TidemarkEngine

/// The fetches of one sync: a few at a time, staged in small commits.
struct CollectionFetch<Source: MirrorSource>: Sendable {
  /// Fetched items are committed once there are so many of them, so many bytes, or for so long.
  private static var itemsPerCommit: Int { 64 }
  private static var bytesPerCommit: Int { 1 << 20 }
  private static var nanosecondsPerCommit: UInt64 { 1_000_000_000 }
  /// A source of which the first so many questions all fail is dead.
  private static var failuresAtFirst: Int { 16 }
  /// Most failures that are told one by one.
  static var mostTold: Int { 100 }

  let cache: Cache<Source.Value>
  let source: Source
  let options: MirrorOptions

  /// The end of the fetches.
  struct Report: Sendable {
    var failures: [MirrorFailure] = []
    /// Whether so many have failed that the rest was not asked for, or should not be switched to.
    var isDead = false
  }

  private enum Fetched: Sendable {
    case item(CollectionUpdate.FetchedItem)
    case failure(Int, any Error)
  }

  /// Fetches what is missing.
  /// - Throws: `CancellationError`; what writing to the store throws. What was staged by then is
  ///   found by the next sync.
  func run(_ update: inout CollectionUpdate) async throws -> Report {
    let missing = update.missing
    var report = Report()
    var waiting = Waiting(since: now)
    var progress = MirrorProgress(total: missing.count + update.resumed)
    progress.fetched = update.resumed
    let asked = update
    try await withThrowingTaskGroup(of: Fetched.self) { group in
      var next = 0
      func ask() {
        guard next < missing.count else { return }
        let index = missing[next]
        next += 1
        group.addTask { await fetch(index, of: asked) }
      }
      for _ in 0..<max(1, min(options.parallelFetches, 64)) { ask() }
      while let fetched = try await group.next() {
        do { try Task.checkCancellation() } catch {
          try await commit(&waiting, &update, isLast: true)
          throw error
        }
        switch fetched {
        case .item(let item):
          progress.fetched += 1
          progress.bytes += item.value.count
          waiting.items.append(item)
          waiting.bytes += item.value.count
        case .failure(let index, let error):
          update.noteFailed(index)
          progress.failed += 1
          if report.failures.count < Self.mostTold {
            let key = asked.items.item(index).key
            report.failures.append(MirrorFailure(key: key, error: error))
          }
        }
        options.progress?(progress)
        let done = progress.fetched - update.resumed
        report.isDead =
          progress.failed > options.mostFailures
          || progress.failed >= Self.failuresAtFirst && done == 0
        if report.isDead { break }
        if isDue(waiting) { try await commit(&waiting, &update) }
        ask()
      }
      group.cancelAll()
    }
    try await commit(&waiting, &update)
    report.isDead = report.isDead || progress.failed > 3 && progress.failed * 2 > missing.count
    return report
  }

  // MARK: One item

  private func fetch(_ index: Int, of update: CollectionUpdate) async -> Fetched {
    let item = update.items.item(index)
    do {
      guard !update.isAmbiguous(index) else {
        throw TidemarkError(
          .conflict,
          "the item is listed with different hashes; the next sync asks for the list again")
      }
      let fetched = try await options.answer(within: options.itemTimeout) {
        try await source.fetch(item)
      }
      if let hash = fetched.hash, hash != item.hash {
        throw TidemarkError(
          .conflict, "the item has changed since it was listed; the next sync fetches it")
      }
      let value = try cache.encode(fetched.value)
      guard value.count <= Limits.valueBytes else {
        throw TidemarkError(
          .limitExceeded,
          "an item of \(value.count) bytes; values have at most "
            + "\(Limits.valueBytes >> 20) MiB")
      }
      try update.check(fetched.labels, fetched.attachment)
      return .item(
        CollectionUpdate.FetchedItem(
          index: index, value: value, labels: fetched.labels,
          maxAge: fetched.maxAge.map { Validity.seconds($0) }, attachment: fetched.attachment))
    } catch { return .failure(index, error) }
  }

  // MARK: Commits

  /// Fetched items that are not committed yet.
  private struct Waiting {
    var items: [CollectionUpdate.FetchedItem] = []
    var bytes = 0
    /// When the last ones were committed.
    var since: UInt64
  }

  private var now: UInt64 { cache.region.engine.environment.clock.monotonicNanoseconds() }

  private func isDue(_ waiting: Waiting) -> Bool {
    waiting.items.count >= Self.itemsPerCommit || waiting.bytes >= Self.bytesPerCommit
      || now &- waiting.since >= Self.nanosecondsPerCommit
  }

  /// - Parameter isLast: whether the task was cancelled: then the commit goes past it.
  private func commit(
    _ waiting: inout Waiting, _ update: inout CollectionUpdate, isLast: Bool = false
  ) async throws {
    defer { waiting = Waiting(since: now) }
    guard !waiting.items.isEmpty else { return }
    let batch = try update.staging(waiting.items)
    if isLast {
      _ = try cache.store.commitBlocking(batch, .buffered)
    } else {
      _ = try await cache.store.commit(batch, .buffered)
    }
    update.noteStaged(waiting.items)
  }
}
