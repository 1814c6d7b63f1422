internal import TidemarkEngine
public import TidemarkSync

/// Checks that a peer does what replication builds upon: for whoever writes one.
///
/// ```swift
/// @Test(arguments: PeerConformance.checks)
/// func conforms(check: PeerConformance.Check) async throws {
///   try await check.run(upon: try await myPeerWithAnEmptyFeed())
/// }
/// ```
/// Each check begins with a peer whose feed is empty and that accepts everything, and closes it.
/// What a peer says that it cannot do, by its capabilities, is not asked of it.
public struct PeerConformance: Sendable {
  /// One promise of a peer that replication relies on, as a check that can run against the peer.
  public struct Check: Sendable, CustomStringConvertible {
    /// The promise that the check tests, as a sentence.
    public let description: String
    let needs: Set<Need>
    let body: @Sendable (Bench) async throws -> Void

    init(
      _ description: String, needs: Set<Need> = [],
      _ body: @escaping @Sendable (Bench) async throws -> Void
    ) {
      self.description = description
      self.needs = needs
      self.body = body
    }

    /// Whether a peer with these capabilities has to keep the promise at all.
    public func applies(to capabilities: PeerCapabilities) -> Bool {
      needs.allSatisfy { need in
        switch need {
        case .numbers: capabilities.isNumbered
        case .digest: capabilities.hasDigest
        case .waiting: capabilities.canWait
        }
      }
    }

    /// Runs the check against a peer, unless the peer's capabilities rule it out.
    /// - Parameters:
    ///   - peer: a peer whose feed is empty; the check closes it afterwards.
    ///   - patience: how long the check may take; the default is 120 seconds.
    /// - Throws: ``Failure`` if the peer does not keep the promise.
    public func run(upon peer: any Peer, patience: Duration = .seconds(120)) async throws {
      guard applies(to: peer.capabilities) else { return await peer.close() }
      do { try await attempt(upon: peer, patience) } catch {
        await peer.close()
        throw Failure(check: description, reason: "\(error)")
      }
      await peer.close()
    }

    /// A peer that hangs may not hear that it is cancelled, so nobody waits for that.
    private func attempt(upon peer: any Peer, _ patience: Duration) async throws {
      let work = Task { [body] in try await body(Bench(peer)) }
      defer { work.cancel() }
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation {
          (waiter: CheckedContinuation<Void, any Error>) in
          let waiting = Lock<CheckedContinuation<Void, any Error>?>(waiter)
          @Sendable func end(_ result: Result<Void, any Error>) {
            let waiter = waiting.withLock { waiting in
              defer { waiting = nil }
              return waiting
            }
            waiter?.resume(with: result)
          }
          let alarm = Task {
            guard (try? await Task.sleep(for: patience)) != nil else { return }
            end(.failure(Broken("it has not ended after \(patience)")))
          }
          Task {
            end(await work.result)
            alarm.cancel()
          }
        }
      } onCancel: {
        work.cancel()
      }
    }
  }

  /// The capability of a peer that a check needs.
  enum Need: Sendable { case numbers, digest, waiting }

  /// A promise that a peer has not kept, with the difference between the expected and the given
  /// answer.
  public struct Failure: Error, Sendable, CustomStringConvertible {
    /// The promise that the peer has not kept, as a sentence.
    public let check: String
    /// How the peer's answer differs from the expected one.
    public let reason: String

    /// The check and the difference, in one line.
    public var description: String { "\(check): \(reason)" }
  }

  /// All checks, for the arguments of a parameterized test.
  public static let checks: [Check] =
    batchChecks + verdictChecks + pullChecks + scopeChecks + readChecks + attachmentChecks
    + lifeChecks

  /// Runs all checks and reports all that fail.
  /// - Parameter makePeer: returns a new peer with an empty feed; called once for each check.
  /// - Throws: ``Failure`` with every failed check, or the error of `makePeer`.
  public static func run(makePeer: () async throws -> any Peer) async throws {
    var failures: [Failure] = []
    for check in checks {
      let peer = try await makePeer()
      do { try await check.run(upon: peer) } catch let failure as Failure {
        failures.append(failure)
      }
    }
    guard let first = failures.first else { return }
    throw Failure(
      check: failures.count == 1 ? first.check : "\(failures.count) of \(checks.count) checks",
      reason: failures.count == 1
        ? first.reason : failures.map { "\n- \($0)" }.joined())
  }
}

/// Why a check fails.
struct Broken: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
