import Testing

@testable import SyncServerKit

@Suite("The limit of requests")
struct RateLimiterTests {
  @Test(
    "a caller that has to wait for longer than a number holds is told the longest time",
    arguments: [1e-10, 1e-20, 1e-300, .leastNonzeroMagnitude])
  func slow(rate: Double) {
    let limiter = RateLimiter(rate: rate, burst: 1, callers: 1)
    #expect(limiter.count("a") == nil)
    #expect(limiter.count("a") == UInt32(min(1 / rate, 4_294_967_295)))
    limiter.charge("b", 2)
    #expect(limiter.debt(of: "b") == UInt32(min(1 / rate, 4_294_967_295)))
  }
}
