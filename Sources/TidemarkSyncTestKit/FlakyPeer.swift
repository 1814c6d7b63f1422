internal import TidemarkEngine
public import TidemarkSync
internal import TidemarkTestKit

/// Another peer behind a bad network: calls are lost on their way there or back, come twice, come
/// late, or fail.
///
/// ```swift
/// let peer = FlakyPeer(try MemoryPeer(), seed: 7, weather: .storm)
/// // … replicate …
/// #expect(peer.counts.answersLost > 0)
/// ```
/// What happens depends on the seed and the order of the calls only. ``counts`` says what really
/// happened, so that a test can insist that its weather was not in vain.
public final class FlakyPeer: Peer {
  /// How likely it is that something happens to a call, from 0 to 1.
  public struct Weather: Sendable, Hashable {
    /// The request does not arrive.
    public var requestLost: Double
    /// The request arrives, its answer does not.
    public var answerLost: Double
    /// The request arrives twice.
    public var doubled: Double
    /// The call is late.
    public var delayed: Double
    /// By how much at most.
    public var longestDelay: Duration
    /// The call fails without arriving, with one of ``errors``.
    public var failed: Double
    /// The errors that calls fail with.
    public var errors: [PeerError]

    /// Weather; by default nothing happens.
    public init(
      requestLost: Double = 0, answerLost: Double = 0, doubled: Double = 0, delayed: Double = 0,
      longestDelay: Duration = .milliseconds(10), failed: Double = 0,
      errors: [PeerError] = [PeerError(.busy, "later", retryAfter: .seconds(1))]
    ) {
      self.requestLost = requestLost
      self.answerLost = answerLost
      self.doubled = doubled
      self.delayed = delayed
      self.longestDelay = longestDelay
      self.failed = failed
      self.errors = errors
    }

    /// Nothing happens.
    public static let fine = Weather()
    /// Everything happens, and often.
    public static let storm = Weather(
      requestLost: 0.1, answerLost: 0.1, doubled: 0.1, delayed: 0.1,
      longestDelay: .milliseconds(1), failed: 0.1)
  }

  /// How often what has happened.
  public struct Counts: Sendable, Hashable {
    public var calls = 0
    public var requestsLost = 0
    public var answersLost = 0
    public var doubled = 0
    public var delayed = 0
    public var failed = 0
  }

  /// The fate of one call.
  private enum Fate { case arrives, requestLost, answerLost, doubled, fails(PeerError) }

  private struct State {
    var weather: Weather
    var counts = Counts()
    var generator: SeededGenerator

    mutating func draw() -> (fate: Fate, delay: Duration) {
      counts.calls += 1
      var delay = Duration.zero
      if generator.chance(weather.delayed) {
        counts.delayed += 1
        delay = weather.longestDelay / 1000 * (1 + generator.int(below: 1000))
      }
      if generator.chance(weather.failed), let error = generator.pick(weather.errors) {
        counts.failed += 1
        return (.fails(error), delay)
      }
      if generator.chance(weather.requestLost) {
        counts.requestsLost += 1
        return (.requestLost, delay)
      }
      if generator.chance(weather.answerLost) {
        counts.answersLost += 1
        return (.answerLost, delay)
      }
      if generator.chance(weather.doubled) {
        counts.doubled += 1
        return (.doubled, delay)
      }
      return (.arrives, delay)
    }
  }

  private let peer: any Peer
  private let state: Lock<State>

  /// Puts a bad network before a peer.
  /// - Parameters:
  ///   - peer: what the calls go to; closed with this one.
  ///   - seed: decides what happens.
  ///   - weather: how likely what is.
  public init(_ peer: any Peer, seed: UInt64, weather: Weather = .fine) {
    self.peer = peer
    state = Lock(State(weather: weather, generator: SeededGenerator(seed: seed)))
  }

  /// How likely what is, from the next call on.
  public var weather: Weather {
    get { state.withLock { $0.weather } }
    set { state.withLock { $0.weather = newValue } }
  }

  /// The counts so far.
  public var counts: Counts { state.withLock { $0.counts } }

  public var capabilities: PeerCapabilities { peer.capabilities }

  private func call<R: Sendable>(_ body: () async throws -> R) async throws -> R {
    let (fate, delay) = state.withLock { $0.draw() }
    if delay > .zero { try await Task.sleep(for: delay) }
    switch fate {
    case .arrives: return try await body()
    case .fails(let error): throw error
    case .requestLost: throw PeerError(.unavailable, "the request was lost")
    case .answerLost:
      // The outcome is lost on its way back.
      _ = try? await body()
      throw PeerError(.unavailable, "the answer was lost")
    case .doubled:
      _ = try? await body()
      return try await body()
    }
  }

  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try await call { try await peer.hello(request) }
  }

  public func push(_ request: PushRequest) async throws -> PushAnswer {
    try await call { try await peer.push(request) }
  }

  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    try await call { try await peer.pull(request) }
  }

  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await call { try await peer.values(request) }
  }

  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await call { try await peer.digest(request) }
  }

  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await call { try await peer.attach(request) }
  }

  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await call { try await peer.fetch(request) }
  }

  public func close() async { await peer.close() }
}
