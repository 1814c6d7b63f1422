package struct ImageHeader: Sendable { package var storeID: [UInt8] = []; package var imageID: UInt64 = 0; package var sequence: UInt64 = 0 }
package final class Image: Sendable {
  package let header = ImageHeader()
  package init(file: any File) throws(IndexError) { throw .limitExceeded }
  package func userInfo() throws(IndexError) -> [UInt8] { [] }
}
package struct MergeInput: Sendable {}
package struct ImageInfo: Sendable {
  package var storeID: [UInt8], imageID: UInt64, sequence: UInt64, userInfo: [UInt8], dropTombstonesThrough: UInt64, keepFormerMembers: Bool
}
package enum ImageWriter { package static func write(_ input: MergeInput, to file: any File, info: ImageInfo) throws(IndexError) { throw .limitExceeded } }
package struct LabelQuery: Sendable {
  package var all: [[UInt8]] = []
  package var any: [[UInt8]] = []
  package var not: [[UInt8]] = []
  package init(all: [[UInt8]] = [], any: [[UInt8]] = [], not: [[UInt8]] = []) { self.all = all; self.any = any; self.not = not }
}
extension Index {
  package convenience init(image: Image?, seed: UInt64) { self.init(seed: seed) }
  func freeze() {}
  func mergeInput() -> MergeInput { MergeInput() }
  func abandonMerge() {}
  func install(_ image: Image) throws(IndexError) {}
  func labelCounts() throws(IndexError) -> [(label: [UInt8], count: Int)] { [] }
  package func page(
    matching: LabelQuery, from: KeyBound, upTo: KeyBound, descending: Bool = false, limit: Int,
    includeFormer: Bool = false, into page: inout KeyPage
  ) throws(IndexError) -> Bool { throw .limitExceeded }
}
