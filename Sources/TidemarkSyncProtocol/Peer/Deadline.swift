/// Runs `body` for no longer than a time.
/// - Throws: what `body` throws; `PeerError` of kind `unavailable` when the time is over, after
///   `body` was cancelled and has ended.
package func withDeadline<R: Sendable>(
  _ time: Duration, _ body: @escaping @Sendable () async throws -> R
) async throws -> R {
  let end = ContinuousClock.now + time
  guard let result = try await withDeadline({ end }, body) else {
    throw PeerError(.unavailable, "the server has not answered for \(time)")
  }
  return result
}

/// Runs `body` until a deadline that may be moved while it runs, as by a transfer's progress.
/// - Returns: nil when the deadline has passed, after `body` was cancelled and has ended.
package func withDeadline<R: Sendable>(
  _ deadline: @escaping @Sendable () -> ContinuousClock.Instant,
  _ body: @escaping @Sendable () async throws -> R
) async throws -> R? {
  try await withThrowingTaskGroup(of: R?.self) { group in
    defer { group.cancelAll() }
    group.addTask { try await body() }
    group.addTask {
      while case let end = deadline(), end > .now { try await Task.sleep(until: end) }
      return nil
    }
    return try await group.next() ?? nil
  }
}
