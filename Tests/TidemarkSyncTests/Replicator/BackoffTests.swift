import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Waiting after failures")
struct BackoffTests {
  @Test("ceilings double up to the longest, and waits are spread evenly below them")
  func growth() {
    let clients = 2000
    var waits = [[Duration]](repeating: [], count: 12)
    for seed in 0..<UInt64(clients) {
      let random = SeededRandom(seed: seed)
      var backoff = Backoff(first: .seconds(1), longest: .seconds(300))
      for failure in waits.indices {
        let wait = backoff.next(random, at: 0, retryAfter: nil)
        #expect(wait.firm <= min(wait.total, .milliseconds(250)), "seed \(seed)")
        waits[failure].append(wait.total)
      }
    }
    for (failure, waits) in waits.enumerated() {
      let ceiling = min(Duration.seconds(300), .seconds(1 << failure))
      var tenths = [Int](repeating: 0, count: 10)
      for wait in waits { tenths[Int(wait / ceiling * 10)] += 1 }
      #expect(tenths.allSatisfy { (clients / 15...clients / 7).contains($0) }, "\(tenths)")
    }
  }

  @Test(
    "a peer is not asked before the time that it wants, a day at most, nor much later",
    arguments: [
      (asked: Duration.seconds(-9), firm: Duration.zero, spread: Duration.seconds(1)),
      (.zero, .zero, .seconds(1)), (.milliseconds(2500), .milliseconds(2500), .milliseconds(2500)),
      (.seconds(900), .seconds(900), .seconds(900)),
      (.seconds(7200), .seconds(7200), .seconds(3600)),
      (.seconds(86_400), .seconds(86_400), .seconds(3600)),
      (.seconds(Int64.max), .seconds(86_400), .seconds(3600)),
    ])
  func requests(asked: Duration, firm: Duration, spread: Duration) {
    let random = SeededRandom(seed: 3)
    var longest = Duration.zero
    for _ in 0..<300 {
      var backoff = Backoff(first: .seconds(1), longest: .seconds(300))
      let wait = backoff.next(random, at: 0, retryAfter: asked)
      #expect(wait.firm >= firm && wait.total >= wait.firm && wait.total <= firm + spread)
      longest = max(longest, wait.total)
    }
    #expect(longest > firm + spread / 2)
  }

  @Test("growth ends once all has worked for as long as the first pause, not before")
  func success() {
    let random = SeededRandom(seed: 4)
    /// The longest of many waits that come after a success so long before the failure.
    func longest(after nanoseconds: UInt64) -> Duration {
      (0..<100).map { _ in
        var backoff = Backoff(first: .seconds(1), longest: .seconds(300))
        for _ in 0..<10 { _ = backoff.next(random, at: 0, retryAfter: nil) }
        backoff.succeeded(at: 1)
        backoff.succeeded(at: 1 + nanoseconds / 2)
        return backoff.next(random, at: 1 + nanoseconds, retryAfter: nil).total
      }.max() ?? .zero
    }
    #expect(longest(after: 999_999_999) > .seconds(100))
    #expect(longest(after: 1_000_000_000) <= .seconds(1))
  }
}
