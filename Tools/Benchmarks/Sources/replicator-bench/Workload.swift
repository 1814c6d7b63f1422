/// Puts to random keys, the same for everybody: 17 bytes of key, about 250 of JSON.
struct Workload {
  let puts: Int
  private let values: [[UInt8]]

  init(puts: Int) {
    self.puts = puts
    values = (0..<4096).map { index in
      let number = UInt64(index + 1) &* 0x9e37_79b9_7f4a_7c15
      let words = (0..<12).map { "word\(number >> UInt64($0 * 4) & 0xfff)" }
      let text = words.joined(separator: " ")
      return Array(
        """
        {"id":\(number),"name":"item \(index)","price":\(number % 10_000),"tags":["a\(index % 7)",\
        "b\(index % 31)"],"text":"\(text)"}
        """.utf8)
    }
  }

  /// The key of a put, as a number.
  func number(_ put: Int) -> UInt64 {
    var hash = UInt64(put) &* 0xbf58_476d_1ce4_e5b9
    hash = (hash ^ hash >> 29) &* 0x94d0_49bb_1331_11eb
    return (hash ^ hash >> 32) % UInt64(puts)
  }

  /// The key of a put.
  func key(_ put: Int) -> [UInt8] {
    var number = number(put)
    var key = Array("item/000000000000".utf8)
    var place = key.count - 1
    while number > 0 {
      key[place] = UInt8(ascii: "0") + UInt8(number % 10)
      number /= 10
      place -= 1
    }
    return key
  }

  func value(_ put: Int) -> [UInt8] { values[put % values.count] }

  /// How many different keys are written.
  var keys: Int { Set((0..<puts).lazy.map(number)).count }
}
