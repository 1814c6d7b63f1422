public import TidemarkSyncProtocol

#if canImport(Network)
  internal import Network

  extension NetworkSignal {
    /// Sets the condition to what the system says of its network, until the task is cancelled.
    ///
    /// ```swift
    /// let network = NetworkSignal()
    /// Task { await network.followSystem() }
    /// let source = CacheSource<[UInt8]>(isOnline: { network.condition != .offline }) { … }
    /// ```
    /// There is no such thing on Linux; see ``follow(every:probe:)``.
    public func followSystem() async {
      for await path in NWPathMonitor() {
        condition =
          path.status != .satisfied
          ? .offline
          : path.isConstrained ? .constrained : path.isExpensive ? .expensive : .unrestricted
      }
    }
  }
#endif

extension NetworkSignal {
  /// Sets the condition to what a probe says, again and again, until the task is cancelled: where
  /// the system does not tell what its network is like.
  ///
  /// ```swift
  /// Task {
  ///   await network.follow(every: .seconds(60)) {
  ///     let request = HTTPTransportRequest(method: "HEAD", url: health)
  ///     return try await transport.answer(to: request, limit: 1_024).status == 200
  ///   }
  /// }
  /// ```
  /// - Parameters:
  ///   - pause: how long to wait between two looks.
  ///   - probe: says whether the server can be reached; an error says that it cannot.
  public func follow(
    every pause: Duration = .seconds(60), probe: @Sendable () async throws -> Bool
  ) async {
    await follow(every: pause, probe: probe) { try await Task.sleep(for: $0) }
  }

  /// The same with a way to wait, which ends it by throwing.
  func follow(
    every pause: Duration, probe: @Sendable () async throws -> Bool,
    sleep: @Sendable (Duration) async throws -> Void
  ) async {
    while !Task.isCancelled {
      let isReached = (try? await probe()) ?? false
      // A probe that was called off says nothing of the network.
      guard !Task.isCancelled else { return }
      condition = isReached ? .unrestricted : .offline
      do { try await sleep(pause) } catch { return }
    }
  }
}
