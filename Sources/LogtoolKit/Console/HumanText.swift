internal import TidemarkEngine

/// Numbers and bytes as people read them.
enum HumanText {
  /// `12.4 MiB`.
  static func size(_ bytes: Int) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"]
    var scaled = Double(bytes)
    var unit = 0
    // Below 1024, since rounding to tenths would make `1024.0 KiB` of a size just below a MiB.
    while scaled >= 1023.95, unit < units.count - 1 {
      scaled /= 1024
      unit += 1
    }
    return unit == 0 ? "\(bytes) B" : "\(tenths(scaled)) \(units[unit])"
  }

  /// `63,440`.
  static func count(_ value: some BinaryInteger) -> String {
    let digits = String(value)
    var text = ""
    for (index, digit) in digits.enumerated() {
      let left = digits.count - index
      if index > 0, left % 3 == 0, text != "-" { text.append(",") }
      text.append(digit)
    }
    return text
  }

  /// `63,440 entries`, `1 entry`.
  static func count(_ value: some BinaryInteger, _ one: String, _ many: String) -> String {
    "\(count(value)) \(value == 1 ? one : many)"
  }

  /// `0.4 s`, `3:07`, `1:02:03`, `12 days`, `27 years`.
  static func duration(seconds: Double) -> String {
    if seconds < 59.95 { return "\(tenths(seconds)) s" }
    let whole = Int(min(max(seconds, 60), 1e15))
    let days = whole / 86_400
    if days >= 36_525 * 100 { return "more than 10,000 years" }
    if days >= 731 { return "\(count(days * 100 / 36_525)) years" }
    if days >= 2 { return "\(days) days" }
    let minutes = whole / 60 % 60
    let rest = whole % 60
    let tail = (rest < 10 ? "0" : "") + "\(rest)"
    guard whole >= 3600 else { return "\(minutes):\(tail)" }
    return "\(whole / 3600):\(minutes < 10 ? "0" : "")\(minutes):\(tail)"
  }

  private static func tenths(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Bytes for a terminal: control characters and what is not UTF-8 are escaped.
  static func escaped(_ bytes: [UInt8], keepingBackslashes keeps: Bool = false) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      return bytes.map { byte in
        0x20..<0x7f ~= byte && byte != UInt8(ascii: "\\")
          ? String(UnicodeScalar(byte)) : escape(byte)
      }.joined()
    }
    guard text.unicodeScalars.contains(where: { isControl($0) || (!keeps && $0 == "\\") }) else {
      return text
    }
    var result = ""
    for scalar in text.unicodeScalars {
      if !keeps, scalar == "\\" {
        result += "\\\\"
      } else if isControl(scalar) {
        for byte in String(scalar).utf8 { result += escape(byte) }
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// Control characters, line separators and what changes the direction of text.
  static func isControl(_ scalar: UnicodeScalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0, 0x061c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }

  private static func escape(_ byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "\n"): "\\n"
    case UInt8(ascii: "\r"): "\\r"
    case UInt8(ascii: "\t"): "\\t"
    case UInt8(ascii: "\\"): "\\\\"
    default: "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
  }
}

extension HumanText {
  /// Like ``escaped(_:)``, but lines and tabs stay: for values that stand alone.
  static func escapedKeepingLines(_ bytes: [UInt8]) -> String {
    bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
      line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
        .map { escaped(Array($0), keepingBackslashes: true) }.joined(separator: "\t")
    }.joined(separator: "\n")
  }
}
