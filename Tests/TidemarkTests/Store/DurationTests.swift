import Testing
import Tidemark
import TidemarkEngine

@Suite("Durations")
struct DurationTests {
  @Test("an age is kept in whole seconds, rounded up, and never below zero")
  func rounding() {
    #expect(PutOptions(maxAge: .seconds(60)).maxAge == .seconds(60))
    #expect(PutOptions(maxAge: .milliseconds(1)).maxAge == .seconds(1))
    #expect(PutOptions(maxAge: .milliseconds(1001)).maxAge == .seconds(2))
    #expect(PutOptions(maxAge: .seconds(-5)).maxAge == .zero)
    #expect(PutOptions(maxAge: .seconds(Int64.max)).maxAge == .seconds(UInt32.max))
    #expect(PutOptions().maxAge == nil)
    #expect(Retention(age: .milliseconds(1)).age == .seconds(1))
    #expect(Retention(age: .seconds(Int64.max)).age == .seconds(Int64.max))
    #expect(Duration.milliseconds(1500).wholeMilliseconds == 1500)
    #expect(Duration.nanoseconds(1).wholeMilliseconds == 1)
    #expect(Duration.seconds(Int64.max).wholeMilliseconds == .max)
  }

  @Test("a validity that a put or a touch gives is that of the entry")
  func validity() async throws {
    let store = try Machine().open()
    try await store.put("a", "1", options: PutOptions(maxAge: .seconds(60)))
    #expect(try store.entry(forKey: "a")?.maxAge == .seconds(60))
    try await store.touch("a", maxAge: .seconds(90))
    #expect(try store.entry(forKey: "a")?.maxAge == .seconds(90))
    try store.blocking.touch("a")
    #expect(try store.entry(forKey: "a")?.maxAge == .seconds(90))
  }
}
