internal import TidemarkEngine

/// The condition of the way to a peer.
public enum NetworkCondition: String, Sendable, Hashable, CaseIterable {
  /// Nothing speaks against using it.
  case unrestricted
  /// It costs, such as a cellular network or a personal hotspot.
  case expensive
  /// The user has asked to save data, or it is slow.
  case constrained
  /// There is none.
  case offline
}

/// Tells replicators what the network is like, as the program hears of it. One serves any number.
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

  /// A signal.
  /// - Parameter condition: what the network is like as long as nobody says otherwise.
  public init(_ condition: NetworkCondition = .unrestricted) {
    state = Lock(condition)
  }

  /// The condition of the network. Replicators that wait look again after a change, and one that
  /// waits after a failure tries again at once.
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

  /// Sets the condition to what a sequence says, until it ends or throws.
  public func follow<Conditions: AsyncSequence>(
    _ conditions: Conditions
  ) async throws(Conditions.Failure) where Conditions.Element == NetworkCondition {
    for try await condition in conditions { self.condition = condition }
  }

  package func observe(_ body: @escaping @Sendable () -> Void) -> Int { observers.observe(body) }

  package func stopObserving(_ token: Int) { observers.stopObserving(token) }
}
