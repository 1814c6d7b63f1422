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
  /// The probabilities, from 0 to 1, with which a ``FlakyPeer`` loses, doubles, delays or fails a
  /// call.
  public struct Weather: Sendable, Hashable {
    /// The probability that the request does not reach the peer.
    public var requestLost: Double
    /// The probability that the request reaches the peer, and its answer is lost.
    public var answerLost: Double
    /// The probability that the request reaches the peer twice.
    public var doubled: Double
    /// The probability that the call waits, for at most ``longestDelay``.
    public var delayed: Double
    /// The longest delay of a delayed call; the default is 10 milliseconds.
    public var longestDelay: Duration
    /// The probability that the call does not reach the peer and throws one of ``errors``.
    public var failed: Double
    /// The errors that failed calls throw; by default `busy` with a retry after one second.
    public var errors: [PeerError]

    /// Creates a weather; without arguments no call is disturbed.
    /// - Parameters:
    ///   - requestLost: the probability that a request does not arrive.
    ///   - answerLost: the probability that an answer is lost.
    ///   - doubled: the probability that a request arrives twice.
    ///   - delayed: the probability that a call is delayed.
    ///   - longestDelay: the longest delay.
    ///   - failed: the probability that a call throws one of `errors`.
    ///   - errors: the errors that failed calls throw.
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

    /// A weather that disturbs no call.
    public static let fine = Weather()
    /// A weather in which calls are often lost, doubled, delayed and failed.
    public static let storm = Weather(
      requestLost: 0.1, answerLost: 0.1, doubled: 0.1, delayed: 0.1,
      longestDelay: .milliseconds(1), failed: 0.1)
  }

  /// How many calls a ``FlakyPeer`` has passed, lost, doubled, delayed and failed.
  public struct Counts: Sendable, Hashable {
    /// How many calls the peer has received.
    public var calls = 0
    /// How many requests did not reach the inner peer.
    public var requestsLost = 0
    /// How many answers of the inner peer were lost.
    public var answersLost = 0
    /// How many requests reached the inner peer twice.
    public var doubled = 0
    /// How many calls the bad network delayed.
    public var delayed = 0
    /// How many calls threw one of ``Weather/errors``.
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

  /// Puts a bad network in front of a peer.
  /// - Parameters:
  ///   - peer: the peer that gets the calls; it is closed with this one.
  ///   - seed: decides which calls are disturbed.
  ///   - weather: the probabilities of the disturbances.
  public init(_ peer: any Peer, seed: UInt64, weather: Weather = .fine) {
    self.peer = peer
    state = Lock(State(weather: weather, generator: SeededGenerator(seed: seed)))
  }

  /// The probabilities of disturbances. A change takes effect with the next call.
  public var weather: Weather {
    get { state.withLock { $0.weather } }
    set { state.withLock { $0.weather = newValue } }
  }

  /// How often each disturbance has happened so far, so that a test can check that its weather did
  /// something.
  public var counts: Counts { state.withLock { $0.counts } }

  /// The capabilities of the inner peer.
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

  /// Passes the hello on to the inner peer through the bad network.
  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try await call { try await peer.hello(request) }
  }

  /// Passes the batch on to the inner peer through the bad network.
  public func push(_ request: PushRequest) async throws -> PushAnswer {
    try await call { try await peer.push(request) }
  }

  /// Passes the pull on to the inner peer through the bad network.
  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    try await call { try await peer.pull(request) }
  }

  /// Passes the question for contents on to the inner peer through the bad network.
  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await call { try await peer.values(request) }
  }

  /// Passes the question for digests on to the inner peer through the bad network.
  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await call { try await peer.digest(request) }
  }

  /// Passes a part of an upload on to the inner peer through the bad network.
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await call { try await peer.attach(request) }
  }

  /// Passes the question for content on to the inner peer through the bad network.
  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await call { try await peer.fetch(request) }
  }

  /// Closes the inner peer.
  public func close() async { await peer.close() }
}
