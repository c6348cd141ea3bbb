// Vector types and loads with cache operators: a thread moves sixteen bytes, and a structure by value is an argument.
struct Box {
    float low, high;
    int keep;
};

__global__ void clamp(const float4 *in, float4 *out, uchar4 *bytes, Box box, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = __ldcs(&in[i]);
    float4 r = make_float4(fminf(fmaxf(v.x, box.low), box.high), fminf(fmaxf(v.y, box.low), box.high),
                           fminf(fmaxf(v.z, box.low), box.high), box.keep ? v.w : 0.0f);
    __stcg(&out[i], r);
    bytes[i] = make_uchar4(__float2int_rn(r.x), __float2int_rz(r.y), __float2int_ru(r.z), __float2int_rd(r.w));
}
