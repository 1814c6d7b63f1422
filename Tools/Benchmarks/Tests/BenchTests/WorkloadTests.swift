import Testing

@testable import tidemark_bench

@Suite("The workload")
struct WorkloadTests {
  @Test("a shuffled order has every index once", arguments: [1, 2, 3, 1000, 4096, 99_999])
  func permutation(n: Int) {
    #expect(Set(Order.shuffled(n, count: n, seed: 5)).count == n)
  }

  @Test("digits of a key are its number")
  func digits() {
    let key = KeyBuffer()
    for number in [0, 7, 12_345_678, 99_999_999] {
      let bytes = key.key(number)
      let digits = bytes.loadUnaligned(fromByteOffset: KeyText.tail, as: UInt64.self)
      #expect(KeyText.number(ofDigits: digits) == number)
      #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("item/0"))
    }
  }

  @Test(
    "values are JSON of about the length asked for, and revisions differ",
    arguments: [100, 250, 4096])
  func lengths(mean: Int) {
    let values = Values(mean: mean)
    let records = Records(values, indices: (0..<2000).map { UInt32($0) }, revision: 0)
    let later = Records(values, indices: [11], revision: 4)
    #expect(abs(records.rawBytes / 2000 - KeyText.byteCount - mean) <= mean / 50)
    #expect(!later.value(0).elementsEqual(records.value(11)))
    #expect(later.value(0).count == records.value(11).count)
    let text = String(decoding: records.value(1999), as: UTF8.self)
    #expect(text.hasPrefix(#"{"id":"000000001999","rev":"00000000","#) && text.hasSuffix(#""}"#))
  }

  @Test("a check refuses a value of another key, one that is cut, and one that is missing")
  func check() {
    let values = Values(mean: 250)
    let records = Records(values, indices: [1, 2], revision: 0)
    guard let key = records.key(0).baseAddress else { return }
    func wrong(_ value: UnsafeRawPointer?, _ count: Int) -> Int {
      var check = Check(values)
      check.see(key, value, count)
      return check.wrong
    }
    let own = records.value(0)
    let other = records.value(1)
    #expect(wrong(own.baseAddress, own.count) == 0)
    #expect(wrong(own.baseAddress, own.count - 1) == 1)
    #expect(wrong(other.baseAddress, other.count) == 1)
    #expect(wrong(nil, own.count) == 1)
  }

  @Test("the frequent keys of Zipf's law are frequent")
  func zipf() {
    let indices = Order.zipf(10_000, count: 50_000, theta: 0.99, seed: 3)
    var counts: [UInt32: Int] = [:]
    for index in indices { counts[index, default: 0] += 1 }
    // The first of ten thousand has one share in zeta(10000, 0.99), which is about 10.2.
    #expect((4300...5500).contains(counts.values.max() ?? 0))
  }
}
