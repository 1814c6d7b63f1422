import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Chance and time")
struct ChanceTests {
  @Test("the numbers of a seed are those of the published generator, for ever")
  func pinned() {
    // Worked out apart from this code, from the reference sources of SplitMix64 and xoshiro256**.
    var generator = SeededGenerator(seed: 42)
    #expect(
      (0..<4).map { _ in generator.next() } == [
        0x1578_0b2e_0c2e_c716, 0x6104_d986_6d11_3a7e, 0xae17_5332_39e4_99a1,
        0xecb8_ad47_03b3_60a1,
      ])
  }

  @Test("the same seed gives the same numbers, another seed others")
  func repeats() {
    let a = SeededRandom(seed: 7)
    let b = SeededRandom(seed: 7)
    let c = SeededRandom(seed: 8)
    #expect(a.bytes(100) == b.bytes(100))
    #expect(a.next() == b.next())
    #expect(a.bytes(32) != c.bytes(32))
  }

  @Test("bounded numbers reach every value and no other, about equally often")
  func bounded() {
    let random = SeededRandom(seed: 1)
    var counts = [Int](repeating: 0, count: 10)
    for _ in 0..<10_000 { counts[random.int(below: 10)] += 1 }
    #expect(counts.allSatisfy { (850...1150).contains($0) })
    #expect(random.int(below: 0) == 0)
    #expect(random.int(below: -5) == 0)
    #expect(Set((0..<200).map { _ in random.int(in: 3...5) }) == [3, 4, 5])
  }

  @Test("chance of 0 never happens, of 1 always, of a quarter a quarter of the time")
  func chance() {
    let random = SeededRandom(seed: 2)
    #expect(!(0..<1000).contains { _ in random.chance(0) })
    #expect(!(0..<1000).contains { _ in !random.chance(1) })
    #expect((2300...2700).contains((0..<10_000).count { _ in random.chance(0.25) }))
  }

  @Test("a shuffle keeps the elements and changes their order")
  func shuffle() {
    let random = SeededRandom(seed: 3)
    var numbers = Array(0..<100)
    random.shuffle(&numbers)
    #expect(numbers != Array(0..<100))
    #expect(numbers.sorted() == Array(0..<100))
    #expect(random.pick([Int]()) == nil)
    #expect(random.pick([5]) == 5)
  }

  @Test("a clock stands still until it is advanced")
  func advance() {
    let clock = ManualClock(Timestamp(seconds: 100, nanoseconds: 900_000_000))
    #expect(clock.now() == Timestamp(seconds: 100, nanoseconds: 900_000_000))
    clock.advance(by: .milliseconds(250))
    #expect(clock.now() == Timestamp(seconds: 101, nanoseconds: 150_000_000))
    #expect(clock.monotonicNanoseconds() == 250_000_000)
  }

  @Test("a jump back moves the time of day and not the other clock")
  func jump() {
    let clock = ManualClock(Timestamp(seconds: 100), monotonicNanoseconds: 5)
    clock.jump(by: .milliseconds(-1500))
    #expect(clock.now() == Timestamp(seconds: 98, nanoseconds: 500_000_000))
    clock.advance(by: .seconds(-1))
    clock.set(to: Timestamp(seconds: 7))
    #expect(clock.now() == Timestamp(seconds: 7))
    #expect(clock.monotonicNanoseconds() == 5)
  }

  @Test("a clock at the end of time stays there")
  func saturates() {
    let clock = ManualClock(Timestamp(seconds: .max), monotonicNanoseconds: .max - 1)
    clock.advance(by: .seconds(Int64.max))
    #expect(clock.now().seconds == .max)
    #expect(clock.monotonicNanoseconds() == .max)
    clock.set(to: Timestamp(seconds: .min))
    clock.jump(by: .seconds(-10))
    #expect(clock.now() == Timestamp(seconds: .min))
  }
}
