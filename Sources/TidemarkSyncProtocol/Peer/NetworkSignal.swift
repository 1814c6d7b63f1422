internal import TidemarkEngine

/// The condition of the network, as the program reports it with a ``NetworkSignal``. A
/// ``SyncBudget`` decides from it what to transfer.
@nonexhaustive
public enum NetworkCondition: String, Sendable, Hashable, CaseIterable {
  /// The network has no restrictions.
  case unrestricted
  /// The network may cost money, such as a cellular network or a personal hotspot.
  case expensive
  /// The network is slow, or the user has asked to save data.
  case constrained
  /// The device has no network.
  case offline
}

/// Tells any number of replicators the condition of the network, as the program observes it.
///
/// ```swift
/// let network = NetworkSignal()
/// let monitor = NWPathMonitor()  // of Apple's framework Network
/// monitor.pathUpdateHandler = { path in
///   network.condition =
///     path.status != .satisfied ? .offline
///     : path.isConstrained ? .constrained : path.isExpensive ? .expensive : .unrestricted
/// }
/// ```
public final class NetworkSignal: Sendable {
  private let state: Lock<NetworkCondition>
  private let observers = Observers()

  /// Creates a signal that reports the same condition until the program sets another.
  /// - Parameter condition: the condition at the beginning.
  public init(_ condition: NetworkCondition = .unrestricted) {
    state = Lock(condition)
  }

  /// The condition of the network. A change wakes replicators that wait for a better condition, and
  /// ends the pause of one that waits after a failure.
  public var condition: NetworkCondition {
    get { state.withLock { $0 } }
    set {
      let hasChanged = state.withLock { condition in
        defer { condition = newValue }
        return condition != newValue
      }
      if hasChanged { observers.notify() }
    }
  }

  /// Sets the condition to each element of an asynchronous sequence, until the sequence ends or
  /// throws.
  /// - Throws: the error of the sequence.
  public func follow<Conditions: AsyncSequence>(
    _ conditions: Conditions
  ) async throws(Conditions.Failure) where Conditions.Element == NetworkCondition {
    for try await condition in conditions { self.condition = condition }
  }

  package func observe(_ body: @escaping @Sendable () -> Void) -> Int { observers.observe(body) }

  package func stopObserving(_ token: Int) { observers.stopObserving(token) }
}
