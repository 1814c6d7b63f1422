import ArgumentParser
import Foundation
import Tidemark
import TidemarkHTTP
import TidemarkSync

@main
struct ReplicatorBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replicator",
    abstract: "The cost of replication, for writers and for what is synced.",
    subcommands: [Writers.self, Live.self], defaultSubcommand: Writers.self)
}

struct Writers: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "The price that writers pay for a replicator whose server is off.",
    discussion: """
      The same puts go to a new store, from one thread: without a replicator, and beside one that \
      cannot reach its server. All take their turns in every round; ratios are to the run without \
      one in the same round, and the median counts.
      """)

  @Option(help: "How many puts a run has.")
  var puts = 1_000_000

  @Option(help: "How many rounds there are.")
  var rounds = 7

  @Option(help: "Where the stores are made.")
  var directory = NSTemporaryDirectory()

  enum Variant: String, CaseIterable {
    case alone
    /// Nobody listens at the server's port.
    case refused
    /// The peer says that it cannot be reached.
    case unavailable
    /// The same, and somebody looks at the status.
    case watched
  }

  struct Cost {
    /// Seconds.
    var wall: Double
    /// Seconds of all threads.
    var processor: Double
  }

  func validate() throws {
    guard (1...100_000_000).contains(puts), (1...1000).contains(rounds) else {
      throw ValidationError("--puts and --rounds take at least 1")
    }
  }

  func run() async throws {
    let workload = Workload(puts: puts)
    let keys = workload.keys
    var costs: [Variant: [Cost]] = [:]
    // The first run finds cold caches, and a disk that is asleep.
    _ = try await cost(of: .alone, workload, keys)
    for round in 0..<rounds {
      let variants = Variant.allCases
      for turn in variants.indices {
        let variant = variants[(turn + round) % variants.count]
        costs[variant, default: []].append(try await cost(of: variant, workload, keys))
      }
    }
    let alone = costs[.alone] ?? []
    for variant in Variant.allCases {
      let own = costs[variant] ?? []
      let rate = Double(puts) / Self.median(own.map(\.wall))
      let time = Self.median(own.map(\.processor)) / Double(puts) * 1e6
      let speed = Self.median(zip(alone, own).map { $0.wall / $1.wall })
      let processor = Self.median(zip(alone, own).map { $0.processor / $1.processor })
      print(
        variant.rawValue.padding(toLength: 12, withPad: " ", startingAt: 0),
        "\(Int(rate)) puts/s, \(Self.rounded(time)) us of processor a put;",
        "speed \(Self.rounded(speed))x, by processor time \(Self.rounded(processor))x")
    }
  }

  /// One run in a store of its own.
  private func cost(of variant: Variant, _ workload: Workload, _ keys: Int) async throws -> Cost {
    let path = "\(directory)/tidemark-bench-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = try await Store.open(at: path)
    let replicator: Replicator? =
      switch variant {
      case .alone: nil
      case .refused:
        // The port of tcpmux, which nobody runs.
        try store.replicator(named: "server", peer: try HTTPPeer("http://127.0.0.1:1/notes"))
      case .unavailable, .watched: try store.replicator(named: "server", peer: NoPeer())
      }
    replicator?.start()
    let watching = Task {
      guard variant == .watched, let replicator else { return }
      for await status in replicator.statuses() where status.pending.entries > keys { return }
    }
    let cost = try await Self.write(workload, to: store)
    let pending = try await store.pending().entries
    guard pending == keys else {
      throw ValidationError("\(pending) entries are pending, not \(keys)")
    }
    watching.cancel()
    await replicator?.stop()
    try await store.close()
    return cost
  }

  /// On a thread of its own, as a program's that writes all the time.
  private static func write(_ workload: Workload, to store: Store) async throws -> Cost {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            let processor = clock()
            let start = ContinuousClock.now
            for put in 0..<workload.puts {
              try store.blocking.put(workload.key(put), workload.value(put))
            }
            let wall = (ContinuousClock.now - start) / .seconds(1)
            return Cost(
              wall: wall, processor: Double(clock() - processor) / Double(CLOCKS_PER_SEC))
          })
      }
    }
  }

  private static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
  }

  private static func rounded(_ value: Double) -> String {
    "\((value * 1000).rounded() / 1000)"
  }
}

/// A peer that cannot be reached.
private struct NoPeer: Peer {
  private let error = PeerError(.unavailable, "switched off")

  var capabilities: PeerCapabilities { PeerCapabilities() }
  func hello(_ request: HelloRequest) async throws -> HelloAnswer { throw error }
  func push(_ request: PushRequest) async throws -> PushAnswer { throw error }
  func pull(_ request: PullRequest) async throws -> PullAnswer { throw error }
  func values(_ request: ValuesRequest) async throws -> ValuesAnswer { throw error }
  func digest(_ request: DigestRequest) async throws -> DigestAnswer { throw error }
  func close() async {}
}
