import Testing
import TidemarkSyncServer

@testable import SyncServerKit

@Suite("Answers that say what went wrong")
struct ProblemTests {
  @Test("Retry-After has whole seconds, rounded up, and stays away where nobody knows")
  func retryAfter() {
    let waits: [(Duration?, String?)] = [
      (nil, nil), (.zero, "0"), (.milliseconds(1), "1"), (.milliseconds(2500), "3"),
      (.seconds(-3), "0"), (.seconds(Int64.max), "4294967295"),
    ]
    for (wait, header) in waits {
      #expect(PeerError(.busy, "later", retryAfter: wait).retryAfterText == header)
    }
  }
}
