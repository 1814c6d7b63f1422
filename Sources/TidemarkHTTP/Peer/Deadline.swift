internal import TidemarkSyncProtocol

/// Runs `body` for no longer than a time.
/// - Throws: what `body` throws; `PeerError` of kind `unavailable` when the time is over, after
///   `body` was cancelled and has ended.
func withDeadline<R: Sendable>(
  _ time: Duration, _ body: @escaping @Sendable () async throws -> R
) async throws -> R {
  try await withThrowingTaskGroup(of: R?.self) { group in
    defer { group.cancelAll() }
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: time)
      return nil
    }
    guard let first = try await group.next(), let result = first else {
      throw PeerError(.unavailable, "the server has not answered for \(time)")
    }
    return result
  }
}
